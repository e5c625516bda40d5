"""Waiting without polling: an open call is answered when work appears, each subtask goes to one of those who wait, and waiting is free."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import httpx
import pytest

from gridx.agents import service as agents
from gridx.agents.presence import Presence
from gridx.jobs import agent_router
from gridx.jobs.dealing import Dealt, Waiting, deal
from gridx.jobs.line import Line
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import FakeAgent, World, weights
from tests.backend.jobs.statements import Writes
from tests.backend.jobs.test_races import together


def line_of(world: World) -> Line:
    return cast("Any", world.api.app).state.line


def open_calls(world: World, agents: Sequence[FakeAgent], wait_s: float = 25) -> "list[Future[httpx.Response]]":
    """The agents' open calls, in the server's own event loop."""
    portal = world.api.portal
    assert portal is not None

    async def call(agent: FakeAgent) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(cast("Any", world.api.app)), base_url="http://testserver") as client:
            headers = {"Authorization": f"Bearer {agent.token}"}
            return await client.post("/agent/request_task", json={"wait_s": wait_s}, headers=headers, timeout=60)

    return [portal.start_task_soon(call, agent) for agent in agents]


def until_waiting(world: World, count: int) -> None:
    end = time.monotonic() + 60
    while line_of(world).waiting != count:
        assert time.monotonic() < end, f"{line_of(world).waiting} of {count} wait"
        time.sleep(0.01)


def waiting(world: World, agent: FakeAgent, **more: Any) -> Waiting:
    with world.database.read() as session:
        return Waiting(agents.authenticate(session, agent.token), **more)


def deal_to(world: World, line: Sequence[Waiting]) -> Dealt:
    return deal(world.database, line, world.clock.now(), world.settings)


class TestOpenCall:
    def test_is_answered_the_moment_work_exists(self, world: World, buyer: Person) -> None:
        [call] = open_calls(world, [world.agent("a")])
        until_waiting(world, 1)
        job_id = world.job(buyer, chunks=1)
        begun = time.monotonic()
        assert call.result(20).json()["job_id"] == job_id
        assert time.monotonic() - begun < 5, "not the end of the waiting time"

    def test_ends_without_work_when_its_time_is_over(self, world: World) -> None:
        answer = world.agent("a").call("request_task", wait_s=0.3).json()
        assert (answer["task_id"], answer["poll_after_s"]) == (None, 0.0)

    def test_ends_when_the_server_is_about_to_and_says_when_to_ask_again(self, world: World) -> None:
        calls = open_calls(world, [world.agent("a"), world.agent("b")])
        until_waiting(world, 2)
        line_of(world).dismiss()
        for call in calls:
            answer = call.result(20).json()
            assert (answer["task_id"], answer["poll_after_s"]) == (None, world.settings.poll_s)

    def test_every_subtask_goes_to_another_of_the_waiting(self, world: World, buyer: Person) -> None:
        calls = open_calls(world, [world.agent(f"a{index}") for index in range(6)], wait_s=4)
        world.job(buyer, chunks=4)
        given = [call.result(30).json()["task_id"] for call in calls]
        assert given.count(None) == 2
        assert len(set(given)) == 5

    def test_of_a_revoked_agent_ends_at_once(self, world: World) -> None:
        agent = world.agent("a")
        calls = open_calls(world, [agent, world.agent("b")])
        until_waiting(world, 2)
        key_id = world.api.get("/agent/keys", headers=agent.owner.headers).json()["items"][0]["id"]
        world.api.delete(f"/agent/keys/{key_id}", headers=agent.owner.headers)
        assert calls[0].result(10).status_code == 401
        assert line_of(world).waiting == 1
        line_of(world).dismiss()

    def test_of_an_agent_that_hangs_up_gives_its_place_up(self, world: World, buyer: Person) -> None:
        agent, portal = world.agent("a"), world.api.portal
        assert portal is not None
        hang_up = portal.call(asyncio.Event)
        body = iter([{"type": "http.request", "body": b'{"wait_s": 25}', "more_body": False}])

        async def receive() -> Any:
            if (message := next(body, None)) is not None:
                return message
            await hang_up.wait()
            return {"type": "http.disconnect"}

        async def send(_message: Any) -> None:
            pass

        headers = [(b"authorization", f"Bearer {agent.token}".encode()), (b"content-type", b"application/json"), (b"content-length", b"14")]
        scope = {"type": "http", "method": "POST", "path": "/agent/request_task", "raw_path": b"", "query_string": b"", "headers": headers}
        call = portal.start_task_soon(cast("Any", world.api.app), scope | {"http_version": "1.1", "scheme": "http"}, receive, send)
        until_waiting(world, 1)
        portal.call(hang_up.set)
        call.result(10)
        assert line_of(world).waiting == 0
        job_id = world.job(buyer, chunks=1)
        assert [subtask["status"] for subtask in world.view(buyer, job_id)["subtasks"]] == ["PENDING"]

    def test_who_asks_in_vain_keeps_waiting_and_the_other_seller_gets_it(self, world: World, buyer: Person) -> None:
        first, second = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=1)
        first.request()
        calls = open_calls(world, [second])
        until_waiting(world, 1)
        first.fail()
        assert calls[0].result(10).json()["attempt"] == 2


class TestManyWaiting:
    def test_a_hundred_cost_no_write_and_thirty_subtasks_go_to_thirty(
        self, world: World, buyer: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agent_router, "MAX_WAIT_S", 600.0)  # so that no call ends on a slow machine
        owner = world.person("lab@sellers.example.com", "seller")
        machines = [world.agent(f"a{index}", owner) for index in range(100)]
        writes = Writes(cast("Any", world.api.app).state.database)
        presence: Presence = cast("Any", world.api.app).state.presence
        writes.clear()
        calls = open_calls(world, machines, wait_s=60)
        until_waiting(world, 100)
        for agent in machines[:20]:
            agent.call("heartbeat")
        world.clock.advance(10)
        presence.flush()
        assert writes.others == []
        assert writes.batches
        job_id = world.job(buyer, chunks=30)
        until_waiting(world, 70)
        line_of(world).dismiss()
        given = [task for call in calls if (task := call.result(30).json()["task_id"]) is not None]
        assert len(given) == len(set(given)) == 30
        view = world.view(buyer, job_id)
        assert [len(subtask["attempts"]) for subtask in view["subtasks"]] == [1] * 30


class TestDeal:
    def test_nothing_due_writes_nothing(self, world: World) -> None:
        line, writes = [waiting(world, world.agent("a"))], Writes(world.database)
        assert deal_to(world, line) == Dealt()
        assert writes.others == []

    def test_two_processes_at_once_give_each_subtask_once(self, world: World, buyer: Person) -> None:
        owner = world.person("lab@sellers.example.com", "seller")
        machines = [waiting(world, world.agent(f"a{index}", owner)) for index in range(40)]
        world.job(buyer, chunks=30)
        dealt = [claim for one in together(2, lambda index: deal_to(world, machines[index::2])) for claim in one.claims.values()]
        dealt += deal_to(world, machines).claims.values()  # what one held locked, the other skipped
        assert len(dealt) == len({claim.subtask_id for claim in dealt}) == 30

    def test_buyers_share_the_waiting_fairly(self, world: World, buyer: Person) -> None:
        first, second = world.job(buyer, chunks=5), world.job(world.person("bob@buyers.example.com"), chunks=5)
        line = [waiting(world, world.agent(f"a{index}")) for index in range(6)]
        claims = deal_to(world, line).claims
        assert [claims[f"a{index}"].job_id for index in range(6)] == [first, second] * 3

    def test_needs_are_met_and_warm_jobs_preferred(self, world: World, buyer: Person) -> None:
        first, second = world.job(buyer, chunks=1), world.job(buyer, chunks=2)
        third = world.job(buyer, chunks=1, needs='{"gpu": true}')
        line = [waiting(world, world.agent("a"), warm_job_ids=[second]), waiting(world, world.agent("b"))]
        line += [waiting(world, world.agent("plain", ram_bytes=0)), waiting(world, world.agent("c", gpu_count=1, gpu_name="T4"))]
        claims = deal_to(world, line).claims
        assert {name: claim.job_id for name, claim in claims.items()} == {"a": second, "b": first, "plain": second, "c": third}

    def test_who_is_working_gets_nothing_more(self, world: World, buyer: Person) -> None:
        agent, free = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=3)
        agent.request()
        assert set(deal_to(world, [waiting(world, agent), waiting(world, free)]).claims) == {"b"}

    def test_whose_token_ended_gets_nothing(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        line = [waiting(world, agent)]
        world.api.delete("/agent/a", headers=agent.owner.headers)
        world.job(buyer, chunks=1)
        assert deal_to(world, line).claims == {}

    def test_a_chunk_goes_back_to_the_agent_that_knows_it(self, world: World, buyer: Person) -> None:
        machines = [world.agent(f"a{index}") for index in range(4)]
        world.job(buyer, chunks=4, rounds=2)
        for agent in machines:
            agent.request()
            agent.finish(weights())
        world.drain()
        claims = deal_to(world, [waiting(world, agent) for agent in reversed(machines)]).claims
        assert {name: claim.chunk_index for name, claim in claims.items()} == {agent.name: agent.task["chunk"] for agent in machines}
        assert {claim.round_number for claim in claims.values()} == {2}

    def test_what_failed_before_is_asked_for_first_by_other_sellers(self, world: World, buyer: Person) -> None:
        first, second = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=1)
        first.request()
        first.fail()
        world.clock.advance(5)
        line = [waiting(world, first), waiting(world, second)]
        assert deal_to(world, line) == Dealt(to_ask={"b"})
        line[1].may_ask = False
        assert deal_to(world, line) == Dealt(to_ask={"a"})

    def test_a_started_attempt_reads_like_an_ordinary_claim(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        [claim] = deal_to(world, [waiting(world, agent)]).claims.values()
        task = agent.request()
        assert (task["task_id"], task["lease_token"], task["attempt"]) == (claim.subtask_id, claim.lease_token, 1)
        agent.finish(weights())
        world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "COMPLETED"
        assert "went to a" in " ".join(event["text"] for event in view["events"])
        assert world.credits(agent.owner) == 101


class TestLine:
    def test_goes_on_when_the_database_was_away(self, world: World) -> None:
        looks: list[Exception | Dealt] = [RuntimeError("away"), Dealt(to_ask={"a"})]

        def look(_: Sequence[Waiting]) -> Dealt:
            found = looks.pop(0) if looks else Dealt()
            if isinstance(found, Exception):
                raise found
            return found

        one = waiting(world, world.agent("a"))

        async def scene() -> None:
            line = Line(world.database, look)
            await asyncio.wait_for(line.join(one.agent).wait(), 10)
            line.close()

        asyncio.run(scene())
        assert looks == []

    def test_what_comes_before_anybody_waits_is_not_lost(self, world: World) -> None:
        one = waiting(world, world.agent("a"))

        async def scene() -> None:
            line = Line(world.database, lambda _: Dealt(to_ask={"a"}))
            ticket = line.join(one.agent)
            with ThreadPoolExecutor(1) as pool:
                await asyncio.get_running_loop().run_in_executor(pool, until, lambda: line.waiting == 0)
            await asyncio.wait_for(ticket.wait(), 5)
            line.close()

        def until(look: Any) -> None:
            end = time.monotonic() + 10
            while not look() and time.monotonic() < end:
                time.sleep(0.01)

        asyncio.run(scene())
