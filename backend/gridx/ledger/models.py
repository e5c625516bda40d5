"""Double entry: accounts that hold whole credits, transfers between two of them, and the two entries of each transfer.

Transfers and entries are written once. Triggers refuse every UPDATE and DELETE, on both databases; `IMMUTABLE_DDL` is what a
migration runs, and `create_all` runs the same.
"""

from datetime import datetime
from typing import Final

from sqlalchemy import DDL, CheckConstraint, ForeignKey, Index, String, Table, UniqueConstraint, event
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base

MINT: Final = "mint"
"""The account that credits come from. It alone may be below 0: its balance is minus all credits in circulation."""


class LedgerAccount(Base):
    """A place for credits: `mint`, `wallet:7`, `escrow:12`. `owner_code` says whose wallet an escrow was filled from."""

    __tablename__ = "ledger_accounts"
    __table_args__ = (CheckConstraint("balance >= 0 OR code = 'mint'", name="balance_not_negative"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(String(64), unique=True)
    owner_code: Mapped[str | None] = mapped_column(String(64), index=True, default=None)
    balance: Mapped[int] = mapped_column(default=0)


class Transfer(Base):
    __tablename__ = "transfers"

    id: Mapped[int] = mapped_column(primary_key=True)
    reference: Mapped[str] = mapped_column(String(200), unique=True)
    reason: Mapped[str] = mapped_column(String(500))
    created_at: Mapped[datetime]


class Entry(Base):
    """One half of a transfer: what it adds to an account, in credits; negative when it takes."""

    __tablename__ = "entries"
    __table_args__ = (
        UniqueConstraint("transfer_id", "account_id"),
        Index(None, "account_id", "id"),
        CheckConstraint("amount <> 0", name="amount_not_zero"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    transfer_id: Mapped[int] = mapped_column(ForeignKey("transfers.id"))
    account_id: Mapped[int] = mapped_column(ForeignKey("ledger_accounts.id"))
    amount: Mapped[int]


_SQLITE_TRIGGER = """\
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are never changed'); END"""

_POSTGRESQL_FUNCTION = """\
CREATE OR REPLACE FUNCTION gridx_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' are never changed'; END $$"""

_POSTGRESQL_TRIGGER = """\
CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION gridx_never_changed()"""

IMMUTABLE_DDL: Final[dict[str, dict[str, list[str]]]] = {
    table: {
        "sqlite": [_SQLITE_TRIGGER.format(table=table, verb=verb) for verb in ("UPDATE", "DELETE")],
        "postgresql": [_POSTGRESQL_FUNCTION, _POSTGRESQL_TRIGGER.format(table=table)],
    }
    for table in ("transfers", "entries")
}
"""Table -> dialect -> statements to run once the table exists. They vanish with the table, except the function below."""

IMMUTABLE_DROP_DDL: Final[dict[str, list[str]]] = {
    "sqlite": [],
    "postgresql": ["DROP FUNCTION IF EXISTS gridx_never_changed()"],
}
"""Dialect -> statements to run after both tables are dropped."""


def _attach(table: Table) -> None:
    for dialect, statements in IMMUTABLE_DDL[table.name].items():
        for statement in statements:
            event.listen(table, "after_create", DDL(statement).execute_if(dialect=dialect))


for _model in (Transfer, Entry):
    _attach(_model.__table__)  # pyright: ignore[reportArgumentType] - a declarative class's table is a Table
