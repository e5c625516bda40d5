"""Calls that wait for each other's rows wait in one order: PostgreSQL never has to end one of them to save the other."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import torch
from sqlalchemy import text, update

from gridx.jobs.models import Attempt
from gridx.jobs.states import lock_job
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World, pth, weights

_LOOK_S, _PATIENCE_S = 0.02, 20.0


def until_waiting(world: World, count: int) -> None:
    """Until so many sessions of this database wait for a lock."""
    tick, end = threading.Event(), time.monotonic() + _PATIENCE_S
    statement = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    while time.monotonic() < end:
        with world.database.read() as session:
            if session.scalar(statement) >= count:
                return
        tick.wait(_LOOK_S)
    raise AssertionError(f"{count} sessions never waited")


@pytest.fixture
def postgresql_world(world: World) -> World:
    if world.database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    return world


class TestWaiting:
    def test_an_expiring_lease_and_a_completion(self, postgresql_world: World, buyer: Person) -> None:
        world = postgresql_world
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        for _ in range(7):  # the agent is silent, the server is not
            world.expire()
            world.clock.advance(10)
        with ThreadPoolExecutor(1) as pool, world.database.write() as session:
            lock_job(session, job_id)  # as a completion does
            expiring = pool.submit(world.expire)
            until_waiting(world, 1)
            session.execute(update(Attempt).where(Attempt.job_id == job_id).values(status="VERIFYING"))
            session.commit()
            assert expiring.result(_PATIENCE_S) == 0

    def test_a_completion_and_a_revoked_key(self, postgresql_world: World, buyer: Person) -> None:
        world = postgresql_world
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        data = pth(weights())
        agent.upload(data)
        key_id = world.api.get("/agent/keys", headers=agent.owner.headers).json()["items"][0]["id"]
        world.clock.advance(1)
        calls: list[Callable[[], Any]] = [
            lambda: agent.complete(data),
            lambda: world.api.delete(f"/agent/keys/{key_id}", headers=agent.owner.headers),
        ]
        with ThreadPoolExecutor(2) as pool, world.database.write() as session:
            lock_job(session, job_id)
            answers: list[Future[Any]] = []
            for count, call in enumerate(calls, 1):
                answers.append(pool.submit(call))
                until_waiting(world, count)
            session.commit()
            assert [answer.result(_PATIENCE_S).status_code for answer in answers] == [200, 200]
        world.drain()
        assert world.credits(agent.owner) == 101


class TestUploadResult:
    def test_repeated_while_the_first_is_received_it_stores_whole_files(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        task = agent.request()
        data = pth(weights(3.0, pad=torch.zeros(1 << 18)))
        gate = threading.Barrier(6)

        def upload() -> int:
            gate.wait(30)
            headers = {"Authorization": f"Bearer {agent.token}", "Gridx-Lease-Token": task["lease_token"]}
            return world.api.post("/agent/upload_result", params={"task_id": task["task_id"]}, content=data, headers=headers).status_code

        with ThreadPoolExecutor(6) as pool:
            assert {future.result(60) for future in [pool.submit(upload) for _ in range(6)]} == {200}
        assert agent.complete(data).status_code == 200
        world.drain()
        assert world.credits(agent.owner) == 101
        assert list((world.settings.home / "tmp").glob("result-*")) == []
