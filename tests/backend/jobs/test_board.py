"""Waiting without polling: an open call is answered when work appears, and as many agents are woken as there is work."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from gridx.core.db import Database
from gridx.jobs.board import Board
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World


class TestOpenCall:
    def test_is_answered_the_moment_work_exists(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(lambda: agent.call("request_task", wait_s=25).json())
            job_id = world.job(buyer, chunks=1)
            begun = time.monotonic()
            assert call.result(20)["job_id"] == job_id
            assert time.monotonic() - begun < 5, "not the end of the waiting time"

    def test_ends_without_work_when_its_time_is_over(self, world: World) -> None:
        answer = world.agent("a").call("request_task", wait_s=0.3).json()
        assert (answer["task_id"], answer["poll_after_s"]) == (None, 0.0)

    def test_ends_when_the_server_is_about_to(self, world: World) -> None:
        board: Board = cast("Any", world.api.app).state.board
        agent = world.agent("a")
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(lambda: agent.call("request_task", wait_s=25).json())
            while not board.waiting:
                time.sleep(0.01)
            begun = time.monotonic()
            board.dismiss()
            assert call.result(20)["task_id"] is None
            assert time.monotonic() - begun < 5

    def test_every_subtask_goes_to_another_of_the_waiting(self, world: World, buyer: Person) -> None:
        agents = [world.agent(f"a{index}") for index in range(6)]
        with ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(lambda agent=agent: agent.call("request_task", wait_s=4).json()) for agent in agents]
            world.job(buyer, chunks=4)
            given = [call.result(30)["task_id"] for call in calls]
        assert given.count(None) == 2
        assert len(set(given)) == 5


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
