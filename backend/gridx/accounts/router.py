"""/auth: accounts, sessions, wallets."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gridx.accounts import service
from gridx.accounts.deps import SESSION_COOKIE, CurrentUser, require_same_origin
from gridx.accounts.models import User
from gridx.accounts.passwords import hash_password
from gridx.accounts.schemas import LoginIn, MovementList, MovementOut, PasswordIn, RegisterIn, TokenOut, UserOut, WalletOut
from gridx.accounts.service import Actor
from gridx.core.deps import ClockDep, DatabaseDep, ReadSession, SettingsDep, WriteSession
from gridx.core.errors import NotFound
from gridx.core.http import ERRORS
from gridx.core.settings import Settings
from gridx.core.text import MAX_ID, Id
from gridx.ledger.accounts import balance, held, wallet_code
from gridx.ledger.transfers import movements

router = APIRouter(prefix="/auth", tags=["accounts"], responses=ERRORS)


@router.post("/register", status_code=201)
def register(body: RegisterIn, database: DatabaseDep, settings: SettingsDep, clock: ClockDep) -> UserOut:
    password_hash = hash_password(body.password)
    with database.write() as session:
        user = service.register(
            session,
            settings,
            email=body.email,
            password_hash=password_hash,
            role=body.role,
            invite=body.invite,
            now=clock.now(),
        )
        return _user_out(service.actor_of(user), service.credits_of(session, user.id))


@router.post("/login")
def login(body: LoginIn, request: Request, response: Response, database: DatabaseDep, settings: SettingsDep, clock: ClockDep) -> TokenOut:
    user = service.log_in(database, email=body.email, password=body.password, ip=_ip(request), now=clock.now())
    return _logged_in(user, response, database, settings, clock)


@router.post("/logout", status_code=204)
def logout(request: Request, response: Response, settings: SettingsDep) -> None:
    """Forget the cookie of this browser."""
    if "authorization" not in request.headers:
        require_same_origin(request, settings)
    response.delete_cookie(SESSION_COOKIE, path="/", secure=_is_secure(settings), httponly=True, samesite="lax")


@router.post("/logout_all", status_code=204)
def logout_all(actor: CurrentUser, response: Response, session: WriteSession, settings: SettingsDep) -> None:
    """End all sessions, everywhere."""
    service.log_out_everywhere(session, actor)
    response.delete_cookie(SESSION_COOKIE, path="/", secure=_is_secure(settings), httponly=True, samesite="lax")


@router.get("/me")
def me(actor: CurrentUser, session: ReadSession) -> UserOut:
    return _user_out(actor, service.credits_of(session, actor.id))


@router.post("/password")
def change_password(
    body: PasswordIn,
    actor: CurrentUser,
    request: Request,
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
    clock: ClockDep,
) -> TokenOut:
    """Set a new password. All other sessions end; the token in the answer is this one's new one."""
    new_hash = hash_password(body.new)
    user = service.change_password(database, actor, old=body.old, new_hash=new_hash, ip=_ip(request), now=clock.now())
    return _logged_in(user, response, database, settings, clock)


@router.get("/wallet/{user_id}")
def wallet(user_id: Id, actor: CurrentUser, session: ReadSession) -> WalletOut:
    code = _own_wallet(actor, user_id)
    return WalletOut(user_id=user_id, credits=balance(session, code), held=held(session, code), role=actor.role)


@router.get("/wallet/{user_id}/transfers")
def wallet_transfers(
    user_id: Id,
    actor: CurrentUser,
    session: ReadSession,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> MovementList:
    """Movements of the wallet, newest first."""
    rows = movements(session, _own_wallet(actor, user_id), before_id=before, limit=limit + 1)
    items = [MovementOut.model_validate(row, from_attributes=True) for row in rows[:limit]]
    return MovementList(items=items, next=items[-1].id if len(rows) > limit else None)


def _own_wallet(actor: Actor, user_id: int) -> str:
    if actor.id != user_id:
        raise NotFound("there is no such wallet")
    return wallet_code(user_id)


def _logged_in(user: User, response: Response, database: DatabaseDep, settings: Settings, clock: ClockDep) -> TokenOut:
    token = service.issue_token(settings, user, clock.now())
    with database.read() as session:
        credits = service.credits_of(session, user.id)
    response.set_cookie(
        SESSION_COOKIE,
        token,
        max_age=int(settings.session_hours * 3600),
        path="/",
        secure=_is_secure(settings),
        httponly=True,
        samesite="lax",
    )
    response.headers["Cache-Control"] = "no-store"
    return TokenOut(access_token=token, user=_user_out(service.actor_of(user), credits))


def _user_out(actor: Actor, credits: int) -> UserOut:
    return UserOut(id=actor.id, email=actor.email, role=actor.role, credits=credits)


def _is_secure(settings: Settings) -> bool:
    return settings.public_url.startswith("https://")


def _ip(request: Request) -> str:
    return request.client.host if request.client else "unknown"
