"""Rounds that do not wait for their slowest machine: part of the chunks, deadlines, second machines."""

import pytest

from gridx.jobs.models import Attempt, Subtask
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import FakeAgent, World, weights


@pytest.fixture
def agents(world: World) -> list[FakeAgent]:
    return [world.agent(f"m{index}") for index in range(5)]


def all_but_the_last(world: World, agents: list[FakeAgent], seconds: float = 5.0) -> FakeAgent:
    """Every agent takes a chunk; all but the last finish it after `seconds`. Returns the slow one."""
    for agent in agents:
        assert agent.request()["task_id"] is not None
    pass_time(world, agents, seconds)
    for agent in agents[:-1]:
        agent.finish(weights())
    world.drain()
    return agents[-1]


def pass_time(world: World, agents: list[FakeAgent], seconds: float) -> None:
    """Time goes by while everybody's heart beats, and the server looks after its rounds."""
    while seconds > 0:
        step = min(seconds, 5.0)
        seconds -= step
        world.clock.advance(step)
        for agent in agents:
            held = {"task_id": agent.task["task_id"], "lease_token": agent.task["lease_token"]} if agent.task else {}
            agent.call("heartbeat", **held)
        world.expire()
        world.look_after_rounds()


class TestFraction:
    def test_part_of_the_chunks_train_and_every_round_draws_anew(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, chunks=10, rounds=4, fraction=0.3, seed=1)
        drawn: list[set[int]] = []
        for number in range(1, 5):
            drawn.append({subtask["chunk"] for subtask in world.view(buyer, job_id, round=number)["subtasks"]})
            for agent in agents[:3]:
                agent.request()
                agent.finish(weights(float(number)))
            world.drain()
        assert all(len(chunks) == 3 for chunks in drawn)
        assert len({tuple(sorted(chunks)) for chunks in drawn}) > 1
        view = world.view(buyer, job_id)
        assert (view["status"], view["price"], view["total_subtasks"], view["chunks_per_round"]) == ("COMPLETED", 12, 12, 3)

    def test_the_draw_depends_on_the_seed_alone(self, world: World, buyer: Person) -> None:
        jobs = [world.job(buyer, chunks=10, fraction=0.5, seed=seed) for seed in (4, 4, 5)]
        same, again, other = ([subtask["chunk"] for subtask in world.view(buyer, job)["subtasks"]] for job in jobs)
        assert same == again != other


class TestBackups:
    def test_a_late_chunk_goes_to_a_second_machine_and_one_of_them_is_paid(
        self, world: World, buyer: Person, agents: list[FakeAgent]
    ) -> None:
        job_id = world.job(buyer)
        slow = all_but_the_last(world, agents)
        assert agents[0].request()["task_id"] is None  # not late yet
        pass_time(world, agents[-1:], 10)
        assert agents[0].request()["task_id"] == slow.task["task_id"]
        assert agents[1].request()["task_id"] is None  # one second machine is enough
        agents[0].finish(weights())
        world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "COMPLETED"
        assert any("is late; m0 tries it as well" in event["text"] for event in view["events"])
        late = next(subtask for subtask in view["subtasks"] if subtask["id"] == slow.task["task_id"])
        assert (late["agent_id"], [attempt["status"] for attempt in late["attempts"]]) == ("m0", ["CANCELLED", "ACCEPTED"])
        beat = slow.about("heartbeat").json()
        assert beat["cancel"] is True
        assert "m0 was faster" in beat["cancel_reason"]
        assert slow.fail("script").json()["code"] == "lease_lost"
        assert [world.credits(agent.owner) for agent in agents] == [102, 101, 101, 101, 100]
        assert world.wallet(buyer)["held"] == 0

    def test_the_slow_machine_may_still_win(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer)
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 10)
        agents[0].request()
        slow.finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert agents[0].about("heartbeat").json()["cancel"] is True
        assert [world.credits(agent.owner) for agent in agents] == [101] * 5

    def test_both_uploads_are_valid_and_one_is_merged_and_paid(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer)
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 10)
        agents[0].request()
        slow.finish(weights())
        agents[0].finish(weights())
        world.drain()
        view = world.view(buyer, job_id)
        assert (view["status"], view["round_list"][0]["updates_used"]) == ("COMPLETED", 5)
        assert sum(world.credits(agent.owner) - 100 for agent in agents) == 5  # all that the buyer paid: nothing was left over
        assert world.wallet(buyer)["held"] == 0

    def test_a_late_update_is_paid_when_the_round_has_credits_left(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, chunks=6, min_updates=4, rounds=2)
        broken = world.agent("broken", agents[4].owner)
        others = [world.agent(name) for name in ("x", "y")]
        broken.request()
        for agent, kind in zip([broken, *others], ("memory", "timeout", "output"), strict=True):
            if agent is not broken:
                agent.request()
            agent.fail(kind, "trouble")  # one chunk's attempts are spent: its credit stays in escrow
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 10)
        agents[0].request()
        agents[0].finish(weights())
        slow.finish(weights())
        world.drain()
        late = [attempt for attempt in _attempts(world, slow.task["task_id"]) if attempt.status == "CANCELLED"]
        assert [attempt.paid for attempt in late] == [1]
        assert world.view(buyer, job_id)["current_round"] == 2
        assert sum(world.credits(agent.owner) - 100 for agent in agents) == 6

    def test_the_chunk_waits_for_nobody_when_both_fail(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer)
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 10)
        agents[0].request()
        slow.fail("agent", "its disk is full")
        late = next(each for each in world.view(buyer, job_id)["subtasks"] if each["id"] == slow.task["task_id"])
        assert (late["status"], late["agent_id"]) == ("RUNNING", "m0")
        agents[0].fail("memory", "too big")
        late = next(each for each in world.view(buyer, job_id)["subtasks"] if each["id"] == slow.task["task_id"])
        assert late["status"] == "PENDING"

    def test_a_refused_upload_leaves_the_other_attempt_at_work(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer)
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 10)
        agents[0].request()
        agents[0].finish(b"this is no archive")
        world.drain()
        late = next(each for each in world.view(buyer, job_id)["subtasks"] if each["id"] == slow.task["task_id"])
        assert (late["status"], late["agent_id"]) == ("RUNNING", slow.name)
        slow.finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert world.credits(slow.owner) == 101

    def test_a_first_round_does_not_wait_for_the_vote_of_a_seller_who_stalls(
        self, world: World, buyer: Person, agents: list[FakeAgent]
    ) -> None:
        job_id = world.job(buyer, chunks=3)
        agents[1].request()
        for _ in range(2):
            agents[0].request()
            agents[0].finish(weights())
            world.drain()
        assert world.view(buyer, job_id)["completed_subtasks"] == 0  # two sellers take part, and one has not voted
        pass_time(world, agents[1:2], 15)
        assert agents[0].request()["task_id"] == agents[1].task["task_id"]
        agents[0].finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert [world.credits(agent.owner) for agent in agents[:2]] == [103, 100]

    def test_no_second_machine_where_the_job_wants_none(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        world.job(buyer, backups=False)
        all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 600)
        assert agents[0].request()["task_id"] is None


class TestDeadlines:
    def test_a_round_closes_with_what_is_there(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, min_updates=3, round_deadline_s=60, backups=False)
        slow = all_but_the_last(world, agents)
        assert "its deadline comes in 55 s, then it closes with what is there" in world.view(buyer, job_id)["waiting_for"]
        pass_time(world, agents[-1:], 60)
        world.drain()
        view = world.view(buyer, job_id)
        assert (view["status"], view["round_list"][0]["updates_used"], view["round_list"][0]["rows_used"]) == ("COMPLETED", 4, 40)
        assert any(
            "its deadline of 60 s came with 4 of 5 updates; it goes on without the others" in each["text"] for each in view["events"]
        )
        assert "closed at its deadline" in slow.about("heartbeat").json()["cancel_reason"]
        assert (world.credits(buyer), world.wallet(buyer)["held"]) == (96, 0)

    def test_an_uploaded_update_counts_though_it_is_not_verified_yet(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, min_updates=5, round_deadline_s=60)
        slow = all_but_the_last(world, agents)
        slow.finish(weights())
        pass_time(world, [], 60)
        world.drain()
        assert world.view(buyer, job_id)["round_list"][0]["updates_used"] == 5

    def test_too_few_are_given_the_time_once_more_and_then_the_job_fails_with_reasons(
        self, world: World, buyer: Person, agents: list[FakeAgent]
    ) -> None:
        job_id = world.job(buyer, min_updates=5, round_deadline_s=60, backups=False)
        all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 60)
        view = world.view(buyer, job_id)
        assert view["status"] == "RUNNING"
        assert any("it gets the same time once more" in event["text"] for event in view["events"])
        pass_time(world, agents[-1:], 60)
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "4 of 5 updates for the second time; 5 are needed. chunk" in view["reason"]
        assert "m4 is still at it" in view["reason"]
        assert (world.credits(buyer), world.wallet(buyer)["held"]) == (96, 0)

    def test_a_retried_round_can_still_end_well(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, min_updates=5, round_deadline_s=60)
        slow = all_but_the_last(world, agents)
        pass_time(world, agents[-1:], 61)
        assert agents[0].request()["task_id"] == slow.task["task_id"]
        agents[0].finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"


def _attempts(world: World, subtask_id: int) -> list[Attempt]:
    with world.database.read() as session:
        return list(session.query(Attempt).join(Subtask, Subtask.id == Attempt.subtask_id).filter(Subtask.id == subtask_id))
