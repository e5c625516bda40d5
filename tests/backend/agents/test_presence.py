"""When agents were seen: noted in memory, written in batches, right at every moment."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from gridx.agents.models import Agent
from gridx.agents.presence import Presence
from gridx.core.db import Database
from tests.backend.jobs.conftest import FakeAgent, World, buyer, world  # noqa: F401 - fixtures
from tests.backend.jobs.statements import Writes


@pytest.fixture
def presence(world: World) -> Presence:  # noqa: F811
    return cast("Any", world.api.app).state.presence


@pytest.fixture
def writes(world: World) -> Writes:  # noqa: F811
    return Writes(cast("Any", world.api.app).state.database)


def status(world: World, agent: FakeAgent) -> str:  # noqa: F811
    return world.api.get(f"/stats/agents/{agent.name}", headers=agent.owner.headers).json()["status"]


def seen(world: World, agent: FakeAgent) -> float:  # noqa: F811
    """Seconds since the agent was seen, as the database knows it."""
    with world.database.read() as session:
        return (world.clock.now() - session.get_one(Agent, agent.name).last_seen_at).total_seconds()


class TestHear:
    @pytest.mark.parametrize("path", ["heartbeat", "request_task"])
    def test_an_idle_call_writes_nothing_until_the_batch(self, world: World, presence: Presence, writes: Writes, path: str) -> None:  # noqa: F811
        agents = [world.agent(f"a{index}") for index in range(3)]
        world.clock.advance(5)
        writes.clear()
        for agent in agents:
            assert agent.call(path).status_code == 200
        assert writes.others == []
        presence.flush()
        assert (writes.others, [seen(world, agent) for agent in agents]) == ([], [0, 0, 0])
        assert writes.batches

    def test_silence_is_offline_and_the_next_call_is_back_at_once(self, world: World) -> None:  # noqa: F811
        agent = world.agent("a")
        world.clock.advance(29)
        assert status(world, agent) == "IDLE"
        world.clock.advance(2)
        assert status(world, agent) == "OFFLINE"
        agent.call("heartbeat")
        assert status(world, agent) == "IDLE"

    def test_an_agent_that_calls_never_looks_offline_before_the_batch_comes(self, world: World) -> None:  # noqa: F811
        agent = world.agent("a")
        for _ in range(8):
            world.clock.advance(9.5)
            agent.call("heartbeat")
            assert status(world, agent) == "IDLE"

    def test_a_revoked_agent_is_offline_at_once_and_stays_it(self, world: World, presence: Presence) -> None:  # noqa: F811
        agent = world.agent("a")
        world.clock.advance(5)
        agent.call("heartbeat")
        key_id = world.api.get("/agent/keys", headers=agent.owner.headers).json()["items"][0]["id"]
        world.api.delete(f"/agent/keys/{key_id}", headers=agent.owner.headers)
        assert agent.call("heartbeat").status_code == 401
        presence.flush()
        assert status(world, agent) == "OFFLINE"


class TestOpenCall:
    def test_counts_as_presence_while_it_lasts(self, world: World, presence: Presence) -> None:  # noqa: F811
        agent, line = world.agent("a"), cast("Any", world.api.app).state.line
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(lambda: agent.call("request_task", wait_s=25))
            while not line.waiting:
                time.sleep(0.01)
            for _ in range(5):
                world.clock.advance(10)
                presence.flush()
                assert (status(world, agent), seen(world, agent)) == ("IDLE", 0)
            line.dismiss()
            assert call.result(20).status_code == 200
        presence.flush()
        world.clock.advance(31)
        presence.flush()
        assert status(world, agent) == "OFFLINE"


class TestFlush:
    def test_what_cannot_be_written_comes_with_the_next_batch(
        self,
        world: World,  # noqa: F811
        presence: Presence,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        agent = world.agent("a")
        world.clock.advance(5)
        agent.call("heartbeat")

        def away(_: Database) -> Any:
            raise ConnectionError

        with monkeypatch.context() as patch:
            patch.setattr(Database, "write", away)
            with pytest.raises(ConnectionError):
                presence.flush()
        presence.flush()
        assert seen(world, agent) == 0

    def test_of_two_processes_the_later_word_counts(self, world: World, presence: Presence) -> None:  # noqa: F811
        agent = world.agent("a")
        other = Presence(world.database, world.clock, 30)
        world.clock.advance(5)
        agent.call("heartbeat")
        world.clock.advance(5)
        with other.open_call("a"):
            pass
        other.flush()
        presence.flush()
        assert seen(world, agent) == 0
        other.close()

    def test_the_end_of_a_process_writes_the_rest(self, world: World) -> None:  # noqa: F811
        agent = world.agent("a")
        other = Presence(world.database, world.clock, 30)
        world.clock.advance(5)
        with other.open_call("a"):
            pass
        other.close()
        assert seen(world, agent) == 0
