"""Sessions on both databases: commit, roll back, never lose a race, and times that stay aware."""

import queue
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError, StatementError

from gridx.accounts.models import Invite, LoginFailure
from gridx.core.db import Database
from gridx.core.errors import Unavailable
from gridx.core.wakeup import Watcher, notify, open_waiter
from tests.backend.racing import in_threads

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)


def add(database: Database, key: str, at: datetime = NOW) -> None:
    with database.write() as session:
        session.add(LoginFailure(key=key, count=0, expires_at=at))


class TestWrite:
    def test_commits_at_its_end(self, database: Database) -> None:
        add(database, "a")
        with database.read() as session:
            assert session.get(LoginFailure, "a") is not None

    def test_rolls_back_when_the_block_raises(self, database: Database) -> None:
        def fail() -> None:
            with database.write() as session:
                session.add(LoginFailure(key="a", count=0, expires_at=NOW))
                session.flush()
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        with database.read() as session:
            assert session.get(LoginFailure, "a") is None

    def test_guarded_counting_by_many_threads_loses_nothing(self, database: Database) -> None:
        add(database, "a")

        def work() -> None:
            for _ in range(10):
                with database.write() as session:
                    session.execute(text("UPDATE login_failures SET count = count + 1 WHERE key = 'a'"))

        assert in_threads([work] * 6) == [None] * 6
        with database.read() as session:
            assert session.scalar(select(LoginFailure.count)) == 60

    def test_foreign_keys_are_enforced(self, database: Database) -> None:
        with pytest.raises(IntegrityError), database.write() as session:
            session.add(Invite(code_hash="x", created_at=NOW, used_by=999))


class TestRead:
    def test_keeps_nothing(self, database: Database) -> None:
        with database.read() as session:
            session.add(LoginFailure(key="a", count=0, expires_at=NOW))
            session.flush()
        with database.read() as session:
            assert session.get(LoginFailure, "a") is None


class TestUnavailable:
    def test_a_database_that_is_away_is_said_to_be(self) -> None:
        database = Database("postgresql+psycopg://gridx@127.0.0.1:1/nothing")
        with pytest.raises(Unavailable) as caught, database.read() as session:
            session.execute(text("SELECT 1"))
        assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "5")


class TestUtcDateTime:
    def test_comes_back_aware_and_utc_whatever_zone_went_in(self, database: Database) -> None:
        add(database, "a", NOW.astimezone(timezone(timedelta(hours=5, minutes=30))))
        with database.read() as session:
            found = session.scalar(select(LoginFailure.expires_at))
            assert found == NOW
            assert found is not None
            assert found.tzinfo is UTC
            assert session.scalar(select(LoginFailure.key).where(LoginFailure.expires_at <= NOW)) == "a"

    def test_a_naive_one_is_refused(self, database: Database) -> None:
        with pytest.raises(StatementError, match="naive"):
            add(database, "a", datetime(2030, 1, 1))  # noqa: DTZ001 - the point of the test


class TestWakeup:
    def test_a_commit_elsewhere_wakes_who_waits(self, database: Database) -> None:
        waiter = open_waiter(database)
        waiter.wait(0)  # PostgreSQL listens from the first call on

        def commit() -> None:
            with database.write() as session:
                session.add(LoginFailure(key="a", count=0, expires_at=NOW))
                notify(session)

        thread = threading.Timer(0.05, commit)
        thread.start()
        assert waiter.wait(20) is True
        thread.join()
        waiter.close()

    def test_without_a_commit_it_waits_no_longer_than_told(self, database: Database) -> None:
        waiter = open_waiter(database)
        assert waiter.wait(0.02) is False
        waiter.close()

    def test_a_wait_ends_when_it_is_interrupted(self, database: Database) -> None:
        waiter = open_waiter(database)
        begun = threading.Timer(0.05, waiter.interrupt)
        begun.start()
        assert waiter.wait(20) is False
        begun.join()
        assert waiter.wait(20) is False, "no later one lasts"
        waiter.close()


class TestWatcher:
    def test_looks_at_first_and_after_each_commit_and_ends_at_once(self, database: Database) -> None:
        looks: queue.Queue[None] = queue.Queue()
        watcher = Watcher(database, lambda: bool(looks.put(None)), name="test", every_s=600)
        watcher.start()
        looks.get(timeout=20)
        for key in "ab":
            with database.write() as session:
                session.add(LoginFailure(key=key, count=0, expires_at=NOW))
                notify(session)
            looks.get(timeout=20)
        began = time.monotonic()
        watcher.close()
        assert time.monotonic() - began < 20
        watcher.close()  # again: an application may be taken down more than once

    def test_looks_on_while_there_is_more_and_after_an_error(self, database: Database) -> None:
        answers = iter([True, True, RuntimeError("the database is away"), False])
        done = threading.Event()

        def look() -> bool:
            answer = next(answers)
            if isinstance(answer, RuntimeError):
                raise answer
            if not answer:
                done.set()
            return answer

        watcher = Watcher(database, look, name="test", every_s=0.01)
        watcher.start()
        assert done.wait(20)
        watcher.close()
