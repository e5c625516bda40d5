"""Leases of background work: whoever holds the token may apply its result, and an expired lease may be taken by another process."""

import secrets
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, or_, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from gridx.core.errors import GridxError


class LeaseLost(GridxError):
    """The work was given to another, or ended. Nothing that the caller did counts."""

    status = 409
    code = "lease_lost"


class Leased:
    """Columns of a row that background processes work on, one at a time."""

    work_token: Mapped[str | None] = mapped_column(default=None)
    work_expires_at: Mapped[datetime | None] = mapped_column(default=None)
    """While a token stands beside it: when the lease ends. Without one: not to be tried before."""
    work_failures: Mapped[int] = mapped_column(default=0)
    """How often this work ended in an unexpected error since it last succeeded."""


def new_lease_token() -> str:
    return secrets.token_hex(16)


def is_free(model: type[Any], now: datetime) -> ColumnElement[bool]:
    """Whether nobody works on a row of `model` now."""
    return or_(model.work_expires_at.is_(None), model.work_expires_at <= now)


def take(session: Session, model: type[Any], row_id: int, now: datetime, seconds: float, *still: ColumnElement[bool]) -> str | None:
    """Lease one row while `still` holds. Returns the token, or None when another was faster."""
    token = new_lease_token()
    statement = (
        update(model)
        .where(model.id == row_id, is_free(model, now), *still)
        .values(work_token=token, work_expires_at=now + timedelta(seconds=seconds))
    )
    return token if _count(session, statement) == 1 else None


def extend(session: Session, model: type[Any], row_id: int, token: str, now: datetime, seconds: float) -> bool:
    """Push the expiry of a lease that is still held."""
    statement = update(model).where(model.id == row_id, model.work_token == token).values(work_expires_at=now + timedelta(seconds=seconds))
    return _count(session, statement) == 1


def give_back(session: Session, model: type[Any], row_id: int, token: str, **values: Any) -> None:
    """End a lease and apply `values` in the same statement. Raises LeaseLost when another took over."""
    statement = (
        update(model)
        .where(model.id == row_id, model.work_token == token)
        .values(work_token=None, work_expires_at=None, work_failures=0, **values)
    )
    if _count(session, statement) != 1:
        raise LeaseLost("another process took this work over")


def put_off(session: Session, model: type[Any], row_id: int, token: str, until: datetime, *, failed: bool) -> None:
    """End a lease early, and keep everybody off the work until `until`. `failed` counts it as a failure of the work itself."""
    statement = (
        update(model)
        .where(model.id == row_id, model.work_token == token)
        .values(work_token=None, work_expires_at=until, work_failures=model.work_failures + int(failed))
    )
    _count(session, statement)


def _count(session: Session, statement: Any) -> int:
    return session.execute(statement, execution_options={"synchronize_session": False}).rowcount  # pyright: ignore[reportAttributeAccessIssue]
