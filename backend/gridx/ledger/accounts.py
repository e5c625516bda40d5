"""Ledger accounts: their codes, opening one, reading balances."""

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.ledger.models import LedgerAccount


def wallet_code(user_id: int) -> str:
    return f"wallet:{user_id}"


def escrow_code(job_id: int) -> str:
    return f"escrow:{job_id}"


def open_account(session: Session, code: str, *, owner_code: str | None = None) -> None:
    """Make an account with balance 0, unless there is one. `owner_code` is only taken when it is made here."""
    if _exists(session, code):
        return
    try:
        with session.begin_nested():
            session.add(LedgerAccount(code=code, owner_code=owner_code, balance=0))
    except IntegrityError:
        if not _exists(session, code):
            raise


def balance(session: Session, code: str) -> int:
    """Credits in an account; 0 for one that was never opened."""
    return session.scalar(select(LedgerAccount.balance).where(LedgerAccount.code == code)) or 0


def held(session: Session, wallet: str) -> int:
    """Credits of a wallet's owner that lie in escrow."""
    total = session.scalar(select(func.sum(LedgerAccount.balance)).where(LedgerAccount.owner_code == wallet))
    return int(total or 0)


def _exists(session: Session, code: str) -> bool:
    return session.scalar(select(LedgerAccount.id).where(LedgerAccount.code == code)) is not None
