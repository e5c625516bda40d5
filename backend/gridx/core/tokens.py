"""Signed tokens (JWT, for people) and opaque ones (for machines; only their SHA-256 is stored)."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any, Literal

from jose import jwt

from gridx.core.errors import NotAuthenticated

_ALGORITHM = "HS256"
_MAX_TOKEN_CHARS = 4096

Audience = Literal["gridx:user"]


def issue_jwt(secret: str, audience: Audience, subject: str, now: datetime, lifetime: timedelta, **claims: Any) -> str:
    """A token for `subject` that one audience accepts until `now + lifetime`."""
    payload = {"sub": subject, "aud": audience, "iat": int(now.timestamp()), "exp": int((now + lifetime).timestamp()), **claims}
    return jwt.encode(payload, secret, algorithm=_ALGORITHM)


def read_jwt(secret: str, audience: Audience, token: str, now: datetime) -> dict[str, Any]:
    """The claims of a valid token. Raises NotAuthenticated for everything else, with no hint which check failed."""
    if len(token) > _MAX_TOKEN_CHARS:
        raise NotAuthenticated("this token is not valid; log in again")
    options = {"require_exp": True, "require_aud": True, "require_sub": True, "verify_exp": False}
    try:
        claims: dict[str, Any] = jwt.decode(token, secret, algorithms=[_ALGORITHM], audience=audience, options=options)
    except Exception:
        raise NotAuthenticated("this token is not valid; log in again") from None
    # The expiry is compared here and not in the library, so that the server's clock can be passed in.
    if int(claims["exp"]) <= now.timestamp():
        raise NotAuthenticated("this session has expired; log in again")
    return claims


def new_secret(prefix: str) -> str:
    """A fresh opaque token of 256 bits, `prefix` first so that a leaked one can be recognised."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def hash_secret(secret: str) -> str:
    """SHA-256, hex. Enough for tokens of 256 random bits; passwords are hashed elsewhere, slowly."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
