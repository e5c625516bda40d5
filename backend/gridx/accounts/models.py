"""People, the invitations they register with, and the count of failed logins."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base


class User(Base):
    """A person. Users are disabled, never deleted: the ledger refers to them."""

    __tablename__ = "users"
    # Ids are never used twice: `welcome:{id}` and the wallet's code are made from them.
    __table_args__ = (CheckConstraint("role IN ('buyer', 'seller', 'both')", name="role"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(320), unique=True)
    """Normalised, lower case."""
    password_hash: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(8))
    token_epoch: Mapped[int] = mapped_column(default=0)
    """Tokens of an earlier epoch are not accepted. Logging out everywhere raises it."""
    is_disabled: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]


class Invite(Base):
    """A permission to register once, for anybody who has the code or for one address only."""

    __tablename__ = "invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    code_hash: Mapped[str] = mapped_column(String(64), unique=True)
    email: Mapped[str | None] = mapped_column(String(320), default=None)
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    used_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"), default=None)


class LoginFailure(Base):
    """Attempts within one window that have not succeeded, per address and per place they came from."""

    __tablename__ = "login_failures"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    """SHA-256 of what is counted."""
    count: Mapped[int]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    """When the window ends and the count begins anew."""
