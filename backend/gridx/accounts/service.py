"""Registering, logging in, and what an administrator may do. Slow hashing happens before a session opens, in the callers."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from pydantic import SecretStr
from sqlalchemy import or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.accounts.models import Invite, User
from gridx.accounts.passwords import verify_password
from gridx.accounts.throttle import count_attempt, forgive_attempt
from gridx.core.db import Database
from gridx.core.errors import Forbidden, GridxError, NotAuthenticated, NotFound, TooManyAttempts
from gridx.core.settings import Settings
from gridx.core.text import MAX_ID
from gridx.core.tokens import hash_secret, issue_jwt, new_secret, read_jwt
from gridx.ledger.accounts import balance, open_account, wallet_code
from gridx.ledger.models import MINT
from gridx.ledger.transfers import transfer

WELCOME_CREDITS = 100


class EmailTaken(GridxError):
    status = 409
    code = "email_taken"


class RegistrationClosed(Forbidden):
    """This server registers only those who were invited, or whose address is of certain domains."""

    code = "registration_closed"


class WrongCredentials(NotAuthenticated):
    """No such user, or another password: the two look the same."""

    code = "wrong_credentials"


class AccountDisabled(Forbidden):
    code = "account_disabled"


@dataclass(frozen=True)
class Actor:
    """Who acts. Holds no session, so it outlives the one it was read in."""

    id: int
    email: str
    role: Literal["buyer", "seller", "both"]

    @property
    def is_buyer(self) -> bool:
        return self.role in ("buyer", "both")

    @property
    def is_seller(self) -> bool:
        return self.role in ("seller", "both")


def register(session: Session, settings: Settings, *, email: str, password_hash: str, role: str, invite: str | None, now: datetime) -> User:
    """A new user with a wallet and the welcome credits. Raises EmailTaken or RegistrationClosed."""
    domains = settings.registration_domains
    if domains and email.rpartition("@")[2] not in domains:
        raise RegistrationClosed(f"this server registers addresses of {', '.join(domains)} only; ask its administrator")
    user = add_user(session, email=email, password_hash=password_hash, role=role, now=now)
    if settings.registration == "invite":
        _use_invite(session, invite, user, now)
    return user


def add_user(session: Session, *, email: str, password_hash: str, role: str, now: datetime) -> User:
    """A new user with a wallet and the welcome credits, whatever the server's rules of registration. Raises EmailTaken."""
    user = User(email=email, password_hash=password_hash, role=role, token_epoch=0, is_disabled=False, created_at=now)
    try:
        with session.begin_nested():
            session.add(user)
    except IntegrityError:
        raise EmailTaken("this e-mail address is registered already; log in instead") from None
    wallet = wallet_code(user.id)
    open_account(session, MINT)
    open_account(session, wallet)
    transfer(
        session,
        reference=f"welcome:{user.id}",
        source=MINT,
        target=wallet,
        amount=WELCOME_CREDITS,
        reason="welcome",
        now=now,
    )
    return user


def log_in(database: Database, *, email: str, password: SecretStr, ip: str, now: datetime) -> User:
    """The user whose password this is. Slow on purpose; opens its own sessions around the slow part.

    Raises:
        WrongCredentials, AccountDisabled, TooManyAttempts.
    """
    user = _verified(database, email=email, password=password, ip=ip, now=now)
    if user.is_disabled:
        raise AccountDisabled("this account is disabled; ask the server's administrator")
    return user


def change_password(database: Database, actor: Actor, *, old: SecretStr, new_hash: str, ip: str, now: datetime) -> User:
    """Set a new password and end all sessions. Raises WrongCredentials or TooManyAttempts."""
    seen = _verified(database, email=actor.email, password=old, ip=ip, now=now)
    with database.write() as session:
        changed = _update_user(
            session,
            User.id == actor.id,
            User.password_hash == seen.password_hash,
            password_hash=new_hash,
            token_epoch=User.token_epoch + 1,
        )
        if not changed:
            raise WrongCredentials("the password was changed by another session meanwhile; log in again")
        return session.scalars(select(User).where(User.id == actor.id)).one()


def log_out_everywhere(session: Session, actor: Actor) -> None:
    """End every token that was issued to the actor."""
    _update_user(session, User.id == actor.id, token_epoch=User.token_epoch + 1)


def issue_token(settings: Settings, user: User, now: datetime) -> str:
    return issue_jwt(
        settings.jwt_secret_key.get_secret_value(),
        "gridx:user",
        str(user.id),
        now,
        timedelta(hours=settings.session_hours),
        epoch=user.token_epoch,
    )


def authenticate(session: Session, secret: str, token: str, now: datetime) -> Actor:
    """Whose token this is. Raises NotAuthenticated for a token that is altered, expired, logged out or of a disabled account."""
    claims = read_jwt(secret, "gridx:user", token, now)
    subject = str(claims["sub"])
    user = None
    if subject.isascii() and subject.isdecimal() and len(subject) <= 16 and int(subject) <= MAX_ID:
        user = session.get(User, int(subject))
    if user is None or user.is_disabled or claims.get("epoch") != user.token_epoch:
        raise NotAuthenticated("this session has ended; log in again")
    return actor_of(user)


def actor_of(user: User) -> Actor:
    return Actor(user.id, user.email, cast(Literal["buyer", "seller", "both"], user.role))


def credits_of(session: Session, user_id: int) -> int:
    return balance(session, wallet_code(user_id))


def find_user(session: Session, email: str) -> User:
    """By normalised address. Raises NotFound."""
    user = session.scalar(select(User).where(User.email == email))
    if user is None:
        raise NotFound(f"nobody is registered as {email}")
    return user


def grant(session: Session, *, email: str, amount: int, reason: str, reference: str, now: datetime) -> bool:
    """Credits from the mint to a user's wallet. Returns False when this reference had granted the same before.

    Raises:
        NotFound: nobody has this address.
        ReferenceTaken: the reference granted something else before.
    """
    wallet = wallet_code(find_user(session, email).id)
    open_account(session, MINT)
    return transfer(session, reference=reference, source=MINT, target=wallet, amount=amount, reason=reason, now=now)


def set_disabled(session: Session, *, email: str, is_disabled: bool) -> User:
    """Disable an account, which ends its sessions, or enable it again. Raises NotFound."""
    user = find_user(session, email)
    _update_user(session, User.id == user.id, is_disabled=is_disabled, token_epoch=User.token_epoch + 1)
    session.refresh(user)
    return user


def reset_password(session: Session, *, email: str, password_hash: str) -> User:
    """Set a password without knowing the old one; ends all sessions. Raises NotFound."""
    user = find_user(session, email)
    _update_user(session, User.id == user.id, password_hash=password_hash, token_epoch=User.token_epoch + 1)
    session.refresh(user)
    return user


def create_invite(session: Session, *, email: str | None, now: datetime) -> str:
    """A code that registers one user, `email` only when given. It is shown this once: only its hash is kept."""
    code = new_secret("gxi")
    session.add(Invite(code_hash=hash_secret(code), email=email, created_at=now))
    return code


def _verified(database: Database, *, email: str, password: SecretStr, ip: str, now: datetime) -> User:
    refused: TooManyAttempts | None = None
    with database.write() as session:
        try:
            count_attempt(session, email=email, ip=ip, now=now)
        except TooManyAttempts as error:
            refused = error  # the count is committed all the same
        user = session.scalar(select(User).where(User.email == email))
    if refused is not None:
        raise refused
    if not verify_password(password, user.password_hash if user else None) or user is None:
        raise WrongCredentials("the e-mail address or the password is wrong")
    with database.write() as session:
        forgive_attempt(session, email=email, ip=ip)
    return user


def _use_invite(session: Session, code: str | None, user: User, now: datetime) -> None:
    statement = (
        update(Invite)
        .where(
            Invite.code_hash == hash_secret(code or ""),
            Invite.used_at.is_(None),
            or_(Invite.email.is_(None), Invite.email == user.email),
        )
        .values(used_at=now, used_by=user.id)
    )
    if session.execute(statement, execution_options={"synchronize_session": False}).rowcount != 1:  # pyright: ignore[reportAttributeAccessIssue]
        raise RegistrationClosed("this server registers by invitation only; this code is unknown, used, or for another address")


def _update_user(session: Session, *where: Any, **values: Any) -> bool:
    statement = update(User).where(*where).values(**values)
    return session.execute(statement, execution_options={"synchronize_session": False}).rowcount == 1  # pyright: ignore[reportAttributeAccessIssue]
