"""The proof must find what was broken on purpose: here by hand, past the triggers and constraints."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from gridx.core.db import Database
from gridx.ledger.accounts import open_account
from gridx.ledger.check import check
from gridx.ledger.transfers import transfer

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def funded(database: Database) -> Database:
    with database.write() as session:
        for code in ("mint", "wallet:1"):
            open_account(session, code)
        transfer(session, reference="welcome:1", source="mint", target="wallet:1", amount=100, reason="", now=NOW)
    return database


def problems_after(database: Database, *statements: str) -> list[str]:
    with database.write() as session:
        if database.is_sqlite:
            session.execute(text("PRAGMA ignore_check_constraints = ON"))
            for table in ("entries", "transfers"):
                session.execute(text(f"DROP TRIGGER {table}_no_UPDATE"))
                session.execute(text(f"DROP TRIGGER {table}_no_DELETE"))
        else:
            for table in ("entries", "transfers"):
                session.execute(text(f"DROP TRIGGER {table}_no_change ON {table}"))
            session.execute(text("ALTER TABLE ledger_accounts DROP CONSTRAINT ck_ledger_accounts_balance_not_negative"))
        for statement in statements:
            session.execute(text(statement))
    with database.read() as session:
        return check(session)


class TestCheck:
    def test_a_sound_ledger_has_no_problems(self, funded: Database) -> None:
        with funded.read() as session:
            assert check(session) == []

    def test_an_empty_ledger_has_no_problems(self, database: Database) -> None:
        with database.read() as session:
            assert check(session) == []

    def test_a_changed_balance_is_named(self, funded: Database) -> None:
        problems = problems_after(funded, "UPDATE ledger_accounts SET balance = 101 WHERE code = 'wallet:1'")
        assert problems == ["account wallet:1 says 101 credits and its entries sum to 100"]

    def test_a_changed_entry_is_named_three_times_over(self, funded: Database) -> None:
        problems = problems_after(funded, "UPDATE entries SET amount = 150 WHERE amount = 100")
        assert problems == [
            "all entries sum to 50, not 0",
            "transfer welcome:1 has 2 entries that sum to 50, not 2 that sum to 0",
            "account wallet:1 says 100 credits and its entries sum to 150",
        ]

    def test_a_transfer_without_entries_is_named(self, funded: Database) -> None:
        problems = problems_after(funded, "DELETE FROM entries", "UPDATE ledger_accounts SET balance = 0")
        assert problems == ["transfer welcome:1 has 0 entries that sum to 0, not 2 that sum to 0"]

    def test_a_negative_wallet_is_named(self, funded: Database) -> None:
        problems = problems_after(
            funded,
            "UPDATE entries SET amount = -amount",
            "UPDATE ledger_accounts SET balance = -balance",
        )
        assert problems == ["account wallet:1 is below 0: -100 credits"]
