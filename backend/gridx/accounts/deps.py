"""Who calls. No session stays open: routes that receive large bodies know their caller before they read the first byte."""

from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request

from gridx.accounts.service import Actor, authenticate
from gridx.core.deps import ClockDep, DatabaseDep, SettingsDep
from gridx.core.errors import Forbidden, NotAuthenticated
from gridx.core.settings import Settings

SESSION_COOKIE: Final = "gridx_session"
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def current_user(request: Request, database: DatabaseDep, settings: SettingsDep, clock: ClockDep) -> Actor:
    """The caller, by Bearer token or else by the web app's cookie. Raises NotAuthenticated."""
    token = _bearer_token(request)
    if token is None:
        token = request.cookies.get(SESSION_COOKIE)
        if not token:
            raise NotAuthenticated("this needs a login: send 'Authorization: Bearer <token>', or log in on the web page")
        require_same_origin(request, settings)
    with database.read() as session:
        return authenticate(session, settings.jwt_secret_key.get_secret_value(), token, clock.now())


def require_same_origin(request: Request, settings: Settings) -> None:
    """Raises NotAuthenticated when a browser sends this unsafe request on behalf of another site's page, or does not say for whose."""
    if request.method in _SAFE_METHODS:
        return
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_same = site in ("same-origin", "none")
    else:
        is_same = _is_own_origin(request.headers.get("origin", ""), request.headers.get("host", ""), settings.public_url)
    if not is_same:
        raise NotAuthenticated(
            "a login by cookie only counts for requests from this server's own pages; send 'Authorization: Bearer <token>' instead"
        )


def buyer(actor: Annotated[Actor, Depends(current_user)]) -> Actor:
    if not actor.is_buyer:
        raise Forbidden("this is for buyers; your role is seller")
    return actor


def seller(actor: Annotated[Actor, Depends(current_user)]) -> Actor:
    if not actor.is_seller:
        raise Forbidden("this is for sellers; your role is buyer")
    return actor


CurrentUser = Annotated[Actor, Depends(current_user)]
BuyerUser = Annotated[Actor, Depends(buyer)]
SellerUser = Annotated[Actor, Depends(seller)]


def _bearer_token(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _is_own_origin(origin: str, host: str, public_url: str) -> bool:
    try:
        parts, public = urlsplit(origin), urlsplit(public_url)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    is_host = parts.netloc.lower() == host.lower()
    return is_host or (parts.scheme, parts.netloc.lower()) == (public.scheme, public.netloc.lower())
