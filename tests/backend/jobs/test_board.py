"""As many of the waiting are woken as there is work."""

import asyncio
import threading

from gridx.core.db import Database
from gridx.jobs.board import Board


class TestBoard:
    def test_wakes_no_more_than_there_is_work_first_come_first_served(self, sqlite_database: Database) -> None:
        async def scene() -> list[bool]:
            board = Board(sqlite_database, lambda: 0)
            tickets = [board.join() for _ in range(3)]
            board.leave(tickets[0])
            board.call(1)
            called = [await ticket.wait(0.05) for ticket in tickets]
            board.close()
            return called

        assert asyncio.run(scene()) == [False, True, False]

    def test_a_wake_up_between_looking_and_waiting_is_not_lost(self, sqlite_database: Database) -> None:
        async def scene() -> bool:
            board = Board(sqlite_database, lambda: 0)
            ticket = board.join()
            board.call(5)
            called = await ticket.wait(1)
            board.close()
            return called

        assert asyncio.run(scene())

    def test_goes_on_when_the_database_was_away(self, sqlite_database: Database) -> None:
        looks = iter([RuntimeError("away"), 1])
        seen = threading.Event()

        def count() -> int:
            look = next(looks, 0)
            if isinstance(look, Exception):
                raise look
            seen.set()
            return look

        async def scene() -> bool:
            board = Board(sqlite_database, count)
            called = await board.join().wait(10)
            board.close()
            return called

        assert asyncio.run(scene())
        assert seen.is_set()
