"""Credits move once, whole, and never out of nothing."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from gridx.core.db import Database
from gridx.ledger.accounts import balance, escrow_code, held, open_account, wallet_code
from gridx.ledger.check import check
from gridx.ledger.models import MINT
from gridx.ledger.transfers import InsufficientFunds, ReferenceTaken, hold, lock, movements, release, settle, transfer
from tests.backend.racing import in_threads

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BUYER, SELLER, ESCROW = wallet_code(1), wallet_code(2), escrow_code(12)


@pytest.fixture
def funded(database: Database) -> Database:
    """A database with a mint, a seller's empty wallet and a buyer's with 100 credits."""
    with database.write() as session:
        for code in (MINT, BUYER, SELLER):
            open_account(session, code)
        move(session, "welcome:1", MINT, BUYER, 100)
    return database


def move(session: Session, reference: str, source: str, target: str, amount: int) -> bool:
    return transfer(session, reference=reference, source=source, target=target, amount=amount, reason="a test", now=NOW)


def balances(database: Database, *codes: str) -> list[int]:
    with database.read() as session:
        return [balance(session, code) for code in codes]


class TestTransfer:
    def test_moves_credits_from_one_account_to_the_other(self, funded: Database) -> None:
        with funded.write() as session:
            assert move(session, "a", BUYER, SELLER, 30) is True
        assert balances(funded, BUYER, SELLER, MINT) == [70, 30, -100]

    def test_the_same_reference_again_moves_nothing(self, funded: Database) -> None:
        with funded.write() as session:
            move(session, "a", BUYER, SELLER, 30)
        with funded.write() as session:
            assert move(session, "a", BUYER, SELLER, 30) is False
        assert balances(funded, BUYER, SELLER) == [70, 30]

    def test_the_same_reference_is_still_known_when_the_balance_would_no_longer_do(self, funded: Database) -> None:
        with funded.write() as session:
            move(session, "a", BUYER, SELLER, 100)
            assert move(session, "a", BUYER, SELLER, 100) is False

    @pytest.mark.parametrize(("source", "target", "amount"), [(BUYER, SELLER, 31), (SELLER, BUYER, 30), (MINT, SELLER, 30)])
    def test_the_same_reference_for_something_else_is_refused(self, funded: Database, source: str, target: str, amount: int) -> None:
        with funded.write() as session:
            move(session, "a", BUYER, SELLER, 30)
        with pytest.raises(ReferenceTaken), funded.write() as session:
            move(session, "a", source, target, amount)
        assert balances(funded, BUYER, SELLER) == [70, 30]

    @pytest.mark.parametrize(("source", "target"), [(BUYER, SELLER), (BUYER, "a:before")])
    def test_more_than_there_is_moves_nothing_and_names_both_numbers(self, funded: Database, source: str, target: str) -> None:
        with funded.write() as session:
            open_account(session, target)
            with pytest.raises(InsufficientFunds, match="needs 101 credits and the balance is 100") as caught:
                move(session, "a", source, target, 101)
            assert (caught.value.status, caught.value.need, caught.value.balance) == (402, 101, 100)
        assert balances(funded, source, target) == [100, 0]

    def test_a_refused_reference_can_be_used_later(self, funded: Database) -> None:
        with funded.write() as session, pytest.raises(InsufficientFunds):
            move(session, "a", BUYER, SELLER, 101)
        with funded.write() as session:
            assert move(session, "a", BUYER, SELLER, 100) is True

    @pytest.mark.parametrize("amount", [0, -1, 2**53 + 1])
    def test_an_amount_outside_the_range_is_refused(self, funded: Database, amount: int) -> None:
        with pytest.raises(ValueError, match="an amount is"), funded.write() as session:
            move(session, "a", BUYER, SELLER, amount)

    @pytest.mark.parametrize("amount", [1.0, True, "5"])
    def test_an_amount_that_is_no_int_is_refused(self, funded: Database, amount: Any) -> None:
        with pytest.raises(TypeError), funded.write() as session:
            move(session, "a", BUYER, SELLER, amount)

    def test_an_account_never_opened_is_refused(self, funded: Database) -> None:
        with pytest.raises(LookupError, match="wallet:9"), funded.write() as session:
            move(session, "a", BUYER, "wallet:9", 1)

    def test_from_an_account_to_itself_is_refused(self, funded: Database) -> None:
        with pytest.raises(ValueError, match="itself"), funded.write() as session:
            move(session, "a", BUYER, BUYER, 1)


class TestRaces:
    def test_of_many_who_want_the_same_credits_only_those_win_that_there_are_credits_for(self, funded: Database) -> None:
        def spend(number: int) -> Callable[[], bool]:
            def work() -> bool:
                with funded.write() as session:
                    return move(session, f"spend:{number}", BUYER, SELLER, 30)

            return work

        results = in_threads([spend(number) for number in range(8)])
        assert results.count(True) == 3
        assert sum(isinstance(result, InsufficientFunds) for result in results) == 5
        assert balances(funded, BUYER, SELLER) == [10, 90]

    def test_one_reference_from_many_threads_moves_once(self, funded: Database) -> None:
        def work() -> bool:
            with funded.write() as session:
                return move(session, "subtask:5", BUYER, SELLER, 30)

        results = in_threads([work] * 8)
        assert sorted(results) == [False] * 7 + [True]
        assert balances(funded, BUYER, SELLER) == [70, 30]

    def test_one_reference_for_two_amounts_moves_one_of_them(self, funded: Database) -> None:
        def moving(amount: int) -> Callable[[], bool]:
            def work() -> bool:
                with funded.write() as session:
                    return move(session, "subtask:5", BUYER, SELLER, amount)

            return work

        results = in_threads([moving(10), moving(20)])
        assert sum(result is True for result in results) == 1
        assert sum(isinstance(result, ReferenceTaken) for result in results) == 1
        assert sum(balances(funded, BUYER, SELLER)) == 100

    def test_transfers_in_both_directions_do_not_lock_each_other_out(self, funded: Database) -> None:
        with funded.write() as session:
            move(session, "start", BUYER, SELLER, 50)

        def shuttling(name: str, source: str, target: str) -> Callable[[], None]:
            def work() -> None:
                for number in range(20):
                    with funded.write() as session:
                        move(session, f"{name}:{number}", source, target, 1)

            return work

        works = [shuttling(f"{name}", *pair) for name in range(2) for pair in ((BUYER, SELLER),)]
        works += [shuttling(f"back{name}", *pair) for name in range(2) for pair in ((SELLER, BUYER),)]
        assert in_threads(works) == [None] * 4
        assert balances(funded, BUYER, SELLER) == [50, 50]

    def test_releasing_while_sellers_are_paid_loses_no_credit(self, funded: Database) -> None:
        with funded.write() as session:
            hold(session, reference="job:12", wallet=BUYER, escrow=ESCROW, amount=10, reason="job 12", now=NOW)

        def pay(number: int) -> Callable[[], bool]:
            def work() -> bool:
                with funded.write() as session:
                    return settle(session, reference=f"subtask:{number}", escrow=ESCROW, wallet=SELLER, amount=1, reason="", now=NOW)

            return work

        def give_back() -> int:
            with funded.write() as session:
                return release(session, reference="job:12:release", escrow=ESCROW, wallet=BUYER, reason="", now=NOW)

        results = in_threads([*(pay(number) for number in range(5)), give_back])
        paid = results.count(True)
        assert results[-1] == 10 - paid
        assert all(result is True or isinstance(result, InsufficientFunds) for result in results[:-1])
        assert balances(funded, BUYER, SELLER, ESCROW) == [100 - paid, paid, 0]


class TestHold:
    def test_moves_into_an_escrow_that_counts_as_held_by_the_wallet(self, funded: Database) -> None:
        with funded.write() as session:
            assert hold(session, reference="job:12", wallet=BUYER, escrow=ESCROW, amount=5, reason="job 12", now=NOW) is True
        with funded.read() as session:
            assert (held(session, BUYER), held(session, SELLER)) == (5, 0)
        assert balances(funded, BUYER, ESCROW) == [95, 5]

    def test_again_holds_nothing_more(self, funded: Database) -> None:
        with funded.write() as session:
            for expected in (True, False):
                moved = hold(session, reference="job:12", wallet=BUYER, escrow=ESCROW, amount=5, reason="", now=NOW)
                assert moved is expected
        assert balances(funded, BUYER, ESCROW) == [95, 5]

    def test_of_eight_jobs_at_once_with_credits_for_one_one_is_held(self, funded: Database) -> None:
        with funded.write() as session:
            move(session, "spent", BUYER, SELLER, 95)

        def submit(job: int) -> Callable[[], bool]:
            def work() -> bool:
                with funded.write() as session:
                    return hold(session, reference=f"job:{job}", wallet=BUYER, escrow=escrow_code(job), amount=5, reason="", now=NOW)

            return work

        results = in_threads([submit(job) for job in range(8)])
        assert results.count(True) == 1
        assert sum(isinstance(result, InsufficientFunds) for result in results) == 7


class TestRelease:
    def test_returns_everything_that_is_left(self, funded: Database) -> None:
        with funded.write() as session:
            hold(session, reference="job:12", wallet=BUYER, escrow=ESCROW, amount=5, reason="", now=NOW)
            settle(session, reference="subtask:1", escrow=ESCROW, wallet=SELLER, amount=2, reason="", now=NOW)
            assert release(session, reference="job:12:release", escrow=ESCROW, wallet=BUYER, reason="", now=NOW) == 3
        assert balances(funded, BUYER, SELLER, ESCROW) == [98, 2, 0]

    def test_of_an_empty_escrow_or_a_second_time_is_zero(self, funded: Database) -> None:
        with funded.write() as session:
            assert release(session, reference="x", escrow=ESCROW, wallet=BUYER, reason="", now=NOW) == 0
            hold(session, reference="job:12", wallet=BUYER, escrow=ESCROW, amount=5, reason="", now=NOW)
            assert release(session, reference="x", escrow=ESCROW, wallet=BUYER, reason="", now=NOW) == 5
            assert release(session, reference="x", escrow=ESCROW, wallet=BUYER, reason="", now=NOW) == 0

    def test_with_a_used_reference_and_credits_left_is_refused(self, funded: Database) -> None:
        with funded.write() as session:
            for number, amount in enumerate((5, 5)):
                hold(session, reference=f"h{number}", wallet=BUYER, escrow=ESCROW, amount=amount, reason="", now=NOW)
                if number == 0:
                    release(session, reference="x", escrow=ESCROW, wallet=BUYER, reason="", now=NOW)
            with pytest.raises(ReferenceTaken):
                release(session, reference="x", escrow=ESCROW, wallet=BUYER, reason="", now=NOW)


class TestLock:
    def test_several_transfers_in_opposite_order_do_not_deadlock(self, funded: Database) -> None:
        with funded.write() as session:
            for job in (1, 2):
                hold(session, reference=f"job:{job}", wallet=BUYER, escrow=escrow_code(job), amount=20, reason="", now=NOW)
            open_account(session, wallet_code(3))

        def paying(job: int, wallets: list[str]) -> Callable[[], None]:
            def work() -> None:
                for number in range(10):
                    with funded.write() as session:
                        lock(session, [escrow_code(job), *wallets])
                        for wallet in wallets:
                            move(session, f"{job}:{number}:{wallet}", escrow_code(job), wallet, 1)

            return work

        sellers = [wallet_code(2), wallet_code(3)]
        assert in_threads([paying(1, sellers), paying(2, sellers[::-1])]) == [None, None]
        assert balances(funded, *sellers) == [20, 20]


class TestOpenAccount:
    def test_opening_again_keeps_balance_and_owner(self, funded: Database) -> None:
        with funded.write() as session:
            open_account(session, BUYER, owner_code="wallet:9")
        with funded.read() as session:
            assert (balance(session, BUYER), held(session, "wallet:9")) == (100, 0)

    def test_many_at_once_open_one(self, funded: Database) -> None:
        def work() -> None:
            with funded.write() as session:
                open_account(session, "wallet:50")

        assert in_threads([work] * 6) == [None] * 6


class TestMovements:
    def test_newest_first_signed_with_the_other_account(self, funded: Database) -> None:
        with funded.write() as session:
            move(session, "a", BUYER, SELLER, 30)
        with funded.read() as session:
            rows = movements(session, BUYER)
        assert [(row.reference, row.amount, row.other) for row in rows] == [("a", -30, SELLER), ("welcome:1", 100, MINT)]
        assert rows[0].created_at == NOW

    def test_pages_by_the_last_id_seen(self, funded: Database) -> None:
        with funded.write() as session:
            for number in range(5):
                move(session, f"m{number}", BUYER, SELLER, 1)
        with funded.read() as session:
            first = movements(session, SELLER, limit=3)
            second = movements(session, SELLER, before_id=first[-1].id, limit=3)
        assert [row.reference for row in first + second] == ["m4", "m3", "m2", "m1", "m0"]


class TestNeverChanged:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entries SET amount = 5",
            "DELETE FROM entries",
            "UPDATE transfers SET reason = 'other'",
            "DELETE FROM transfers",
        ],
    )
    def test_the_database_itself_refuses(self, funded: Database, statement: str) -> None:
        with pytest.raises(DatabaseError, match="never changed"), funded.write() as session:
            session.execute(text(statement))

    def test_a_wallet_below_zero_is_refused_by_the_database(self, funded: Database) -> None:
        with pytest.raises(DatabaseError), funded.write() as session:
            session.execute(text("UPDATE ledger_accounts SET balance = -1 WHERE code = 'wallet:1'"))


class TestInvariants:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["r1", "r2", "r3", "r4", "r5", "r6"]),
                st.sampled_from([MINT, BUYER, SELLER, ESCROW]),
                st.sampled_from([BUYER, SELLER, ESCROW]),
                st.integers(1, 60),
            ),
            max_size=12,
        )
    )
    def test_whatever_is_tried_the_books_balance(self, funded: Database, tries: list[tuple[str, str, str, int]]) -> None:
        with funded.write() as session:
            open_account(session, ESCROW)
        for reference, source, target, amount in tries:
            if source == target:
                continue
            with funded.write() as session, suppress(InsufficientFunds, ReferenceTaken):
                move(session, reference, source, target, amount)
        with funded.read() as session:
            assert check(session) == []
