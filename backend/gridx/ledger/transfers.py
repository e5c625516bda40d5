"""Moving credits. Every movement has a reference; a reference moves credits once, however often it is asked to.

A transfer changes its two accounts in the order of their codes, so two transfers never wait for each other. A transaction that makes
several transfers calls `lock` first with all their accounts, for the same reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from gridx.core.errors import GridxError
from gridx.ledger.accounts import balance, open_account
from gridx.ledger.models import MINT, Entry, LedgerAccount, Transfer

_MAX_AMOUNT = 2**53


class InsufficientFunds(GridxError):
    """An account holds less than the transfer needs. Nothing was moved."""

    status = 402
    code = "insufficient_funds"

    def __init__(self, account: str, need: int, balance: int) -> None:
        super().__init__(f"this needs {need} credits and the balance is {balance}")
        self.account = account
        self.need = need
        self.balance = balance


class ReferenceTaken(GridxError):
    """The reference already moved another amount, or moved it between other accounts. Nothing was moved now."""

    status = 409
    code = "reference_taken"


@dataclass(frozen=True)
class Movement:
    """A transfer as one account sees it. `amount` is signed: below 0 when credits left. `id` is the place to page from."""

    id: int
    amount: int
    other: str
    reference: str
    reason: str
    created_at: datetime


def transfer(session: Session, *, reference: str, source: str, target: str, amount: int, reason: str, now: datetime) -> bool:
    """Move `amount` credits (at least 1) between two open accounts.

    Returns:
        True when the credits moved now, False when this reference had already moved the same amount between the same accounts.

    Raises:
        InsufficientFunds: `source` holds less and is not the mint.
        ReferenceTaken: the reference moved something else before.
        LookupError: an account was never opened.
    """
    _check_amount(amount)
    if source == target:
        raise ValueError(f"a transfer from {source} to itself")
    if _already_moved(session, reference, source, target, amount):
        return False
    ids = _account_ids(session, source, target)
    try:
        with session.begin_nested():
            transfer_id = session.scalar(insert(Transfer).values(reference=reference, reason=reason, created_at=now).returning(Transfer.id))
            session.execute(
                insert(Entry),
                [
                    {"transfer_id": transfer_id, "account_id": ids[source], "amount": -amount},
                    {"transfer_id": transfer_id, "account_id": ids[target], "amount": amount},
                ],
            )
            changes = {source: -amount, target: amount}
            for code in sorted(changes):
                _change(session, code, changes[code])
    except IntegrityError:
        # Another session used the reference between our look and our insert.
        if _already_moved(session, reference, source, target, amount):
            return False
        raise
    return True


def hold(session: Session, *, reference: str, wallet: str, escrow: str, amount: int, reason: str, now: datetime) -> bool:
    """Buyer -> escrow. Opens the escrow and remembers whose it is. Raises as `transfer` does."""
    open_account(session, escrow, owner_code=wallet)
    return transfer(session, reference=reference, source=wallet, target=escrow, amount=amount, reason=reason, now=now)


def settle(session: Session, *, reference: str, escrow: str, wallet: str, amount: int, reason: str, now: datetime) -> bool:
    """Escrow -> seller. Raises as `transfer` does."""
    return transfer(session, reference=reference, source=escrow, target=wallet, amount=amount, reason=reason, now=now)


def release(session: Session, *, reference: str, escrow: str, wallet: str, reason: str, now: datetime) -> int:
    """Escrow -> buyer: everything that is left.

    Returns:
        The credits moved now: 0 when nothing was left, so also when the reference was used before.

    Raises:
        ReferenceTaken: the reference moved something before and there is something left again.
    """
    lock(session, [escrow, wallet])
    left = balance(session, escrow)
    if left == 0:
        return 0
    moved = transfer(session, reference=reference, source=escrow, target=wallet, amount=left, reason=reason, now=now)
    if not moved:
        raise ReferenceTaken(f"{reference} was used before, and {escrow} holds {left} credits again")
    return left


def lock(session: Session, codes: Iterable[str]) -> None:
    """Wait for, and keep until the commit, the right to change these accounts. For transactions of several transfers."""
    for code in sorted(set(codes)):
        session.execute(select(LedgerAccount.id).where(LedgerAccount.code == code).with_for_update())


def movements(session: Session, code: str, *, before_id: int | None = None, limit: int = 50) -> list[Movement]:
    """An account's transfers, newest first; those older than `before_id` when it is given."""
    other_entry, other_account = aliased(Entry), aliased(LedgerAccount)
    statement = (
        select(Entry.id, Entry.amount, other_account.code, Transfer.reference, Transfer.reason, Transfer.created_at)
        .join(LedgerAccount, LedgerAccount.id == Entry.account_id)
        .join(Transfer, Transfer.id == Entry.transfer_id)
        .join(other_entry, (other_entry.transfer_id == Entry.transfer_id) & (other_entry.id != Entry.id))
        .join(other_account, other_account.id == other_entry.account_id)
        .where(LedgerAccount.code == code)
        .order_by(Entry.id.desc())
        .limit(limit)
    )
    if before_id is not None:
        statement = statement.where(Entry.id < before_id)
    return [Movement(*row) for row in session.execute(statement)]


def _check_amount(amount: int) -> None:
    if isinstance(amount, bool) or not isinstance(amount, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"an amount is a whole number of credits, not {type(amount).__name__}")
    if not 1 <= amount <= _MAX_AMOUNT:
        raise ValueError(f"an amount is 1 to 2**53 credits, not {amount}")


def _already_moved(session: Session, reference: str, source: str, target: str, amount: int) -> bool:
    """Whether this very transfer was made. Raises ReferenceTaken when the reference belongs to a different one."""
    statement = (
        select(LedgerAccount.code, Entry.amount)
        .join(Entry, Entry.account_id == LedgerAccount.id)
        .join(Transfer, Transfer.id == Entry.transfer_id)
        .where(Transfer.reference == reference)
    )
    made = {row.code: row.amount for row in session.execute(statement)}
    if not made:
        return False
    if made != {source: -amount, target: amount}:
        raise ReferenceTaken(f"{reference} was used before, for a different transfer")
    return True


def _account_ids(session: Session, source: str, target: str) -> dict[str, int]:
    statement = select(LedgerAccount.code, LedgerAccount.id).where(LedgerAccount.code.in_((source, target)))
    ids = {row.code: row.id for row in session.execute(statement)}
    for code in (source, target):
        if code not in ids:
            raise LookupError(f"ledger account {code} was never opened")
    return ids


def _change(session: Session, code: str, amount: int) -> None:
    """Add to a balance; take from it only when it holds enough."""
    statement = update(LedgerAccount).where(LedgerAccount.code == code).values(balance=LedgerAccount.balance + amount)
    if amount < 0 and code != MINT:
        statement = statement.where(LedgerAccount.balance >= -amount)
    changed = session.execute(statement, execution_options={"synchronize_session": False})
    if changed.rowcount != 1:  # pyright: ignore[reportAttributeAccessIssue]
        raise InsufficientFunds(code, need=-amount, balance=balance(session, code))
