"""Proof that the books balance.

Each question is one statement, hence one snapshot: transfers that commit meanwhile cannot make a sound ledger look broken.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.ledger.models import MINT, Entry, LedgerAccount, Transfer

_MOST_PER_KIND = 100


def check(session: Session) -> list[str]:
    """What is wrong with the ledger, one sentence each (at most 100 of a kind); empty when it is sound."""
    return [
        *_sum_of_all(session),
        *_unbalanced_transfers(session),
        *_wrong_balances(session),
        *_negative_accounts(session),
        *_repeated_references(session),
        *_orphans(session),
    ]


def _sum_of_all(session: Session) -> list[str]:
    total = int(session.scalar(select(func.sum(Entry.amount))) or 0)
    return [f"all entries sum to {total}, not 0"] if total else []


def _unbalanced_transfers(session: Session) -> list[str]:
    count, total = func.count(Entry.id), func.coalesce(func.sum(Entry.amount), 0)
    statement = (
        select(Transfer.reference, count, total)
        .outerjoin(Entry, Entry.transfer_id == Transfer.id)
        .group_by(Transfer.id, Transfer.reference)
        .having((count != 2) | (total != 0))
        .order_by(Transfer.id)
        .limit(_MOST_PER_KIND)
    )
    return [
        f"transfer {reference} has {entries} entries that sum to {int(amount)}, not 2 that sum to 0"
        for reference, entries, amount in session.execute(statement)
    ]


def _wrong_balances(session: Session) -> list[str]:
    total = func.coalesce(func.sum(Entry.amount), 0)
    statement = (
        select(LedgerAccount.code, LedgerAccount.balance, total)
        .outerjoin(Entry, Entry.account_id == LedgerAccount.id)
        .group_by(LedgerAccount.id, LedgerAccount.code, LedgerAccount.balance)
        .having(LedgerAccount.balance != total)
        .order_by(LedgerAccount.id)
        .limit(_MOST_PER_KIND)
    )
    return [
        f"account {code} says {balance} credits and its entries sum to {int(amount)}"
        for code, balance, amount in session.execute(statement)
    ]


def _negative_accounts(session: Session) -> list[str]:
    statement = (
        select(LedgerAccount.code, LedgerAccount.balance)
        .where(LedgerAccount.balance < 0, LedgerAccount.code != MINT)
        .order_by(LedgerAccount.id)
        .limit(_MOST_PER_KIND)
    )
    return [f"account {code} is below 0: {balance} credits" for code, balance in session.execute(statement)]


def _repeated_references(session: Session) -> list[str]:
    statement = (
        select(Transfer.reference, func.count(Transfer.id))
        .group_by(Transfer.reference)
        .having(func.count(Transfer.id) > 1)
        .limit(_MOST_PER_KIND)
    )
    return [f"reference {reference} was used by {times} transfers" for reference, times in session.execute(statement)]


def _orphans(session: Session) -> list[str]:
    statement = (
        select(Entry.id)
        .outerjoin(Transfer, Transfer.id == Entry.transfer_id)
        .outerjoin(LedgerAccount, LedgerAccount.id == Entry.account_id)
        .where(Transfer.id.is_(None) | LedgerAccount.id.is_(None))
        .order_by(Entry.id)
        .limit(_MOST_PER_KIND)
    )
    return [f"entry {entry} belongs to no transfer or no account" for entry in session.scalars(statement)]
