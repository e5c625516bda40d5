"""Gangs: all places or none, one pay for each rank, and what happens when a rank is lost."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from gridx.agents.service import quarantine
from gridx.core.errors import Forbidden, Invalid
from gridx.core.lease import LeaseLost
from gridx.jobs import forming
from gridx.jobs.gang_models import Checkpoint, Gang
from gridx.jobs.models import Attempt
from gridx.ledger.models import Transfer
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World, weights
from tests.backend.jobs.gang_play import Play, RankAgent


@pytest.fixture
def play(world: World) -> Play:
    return Play(world)


def waits(world: World, buyer: Person, job_id: int) -> str:
    return world.view(buyer, job_id)["waiting_for"]


def ask_again(agents: list[RankAgent]) -> list[RankAgent]:
    return [each for each in agents if each.ask()]


class TestForming:
    def test_all_places_or_none(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 3)
        assert not play.form()
        assert ask_again(agents) == []
        assert "only 2 are offered; 1 more are missing" in waits(world, buyer, job_id)
        agents += play.agents("c")
        gang = play.start(agents)
        assert [each.rank for each in gang] == [0, 1, 2]
        assert world.view(buyer, job_id)["subtasks"][0]["kind"] == "rank"

    def test_two_gangs_of_three_on_four_agents_go_one_after_the_other(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b c d")
        first, second = play.job(buyer, 3), play.job(buyer, 3)
        gang = play.start(agents)
        assert not play.form(), "the fourth agent alone is not reserved for the second"
        assert "3 ranks need 3 slots" in waits(world, buyer, second)
        assert "1 are free now, 4 once others have ended or asked again" in waits(world, buyer, second)
        play.finish(gang)
        assert world.view(buyer, first)["status"] == "COMPLETED"
        play.finish(play.start(agents))
        assert world.view(buyer, second)["status"] == "COMPLETED"

    def test_formers_that_race_reserve_each_place_once(self, world: World, buyer: Person, play: Play) -> None:
        play.agents("a b c d")
        for _ in range(2):
            play.job(buyer, 3)
        barrier = threading.Barrier(4)

        def form(_: int) -> bool:
            barrier.wait(30)
            try:
                with world.database.write() as session:
                    return forming.form_next(session, world.clock.now(), world.settings) is not None
            except IntegrityError:
                return False

        with ThreadPoolExecutor(4) as pool:
            formed = list(pool.map(form, range(4)))
        assert sum(formed) == 1
        with world.database.read() as session:
            assert session.scalar(select(func.count()).select_from(Attempt).where(Attempt.status == "RUNNING")) == 3
            assert session.scalar(select(func.count()).select_from(Gang)) == 1

    def test_an_agent_may_hold_several_ranks_if_it_offers_slots(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agent("a", slots=2) + play.agent("b")
        play.job(buyer, 3)
        gang = play.start(agents)
        assert [(each.agent.name, each.register().local_rank) for each in gang] == [("a", 0), ("a", 1), ("b", 0)]

    def test_ordinary_work_goes_on_beside_ranks(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        world.job(buyer, chunks=1)
        worker = gang[0].agent
        held = worker.task
        assert worker.request()["kind"] == "train"
        worker.finish(weights())
        worker.task = held
        play.finish(gang)
        assert world.credits(worker.owner) == 102

    def test_needs_and_networks(self, world: World, buyer: Person, play: Play) -> None:
        play.agents("a b", ram_bytes=2**30)
        play.agents("c", place="machine:two")
        job_id = play.job(buyer, 2, needs='{"ram_bytes": 2000000000}')
        assert not play.form()
        assert "only 1 are offered, 2 more do not meet the job's needs, or take no work now" in waits(world, buyer, job_id)
        other = play.job(buyer, 3)
        assert not play.form()
        assert "3 are offered, but at most 2 of them in one network" in waits(world, buyer, other)

    def test_a_machine_in_quarantine_gets_no_rank(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        until = world.clock.now() + timedelta(seconds=600)
        with world.database.write() as session:
            quarantine(session, agents[0].agent.name, until, "its updates were refused")
        job_id = play.job(buyer, 2)
        assert not play.form()
        assert "only 1 are offered, 1 more do not meet the job's needs, or take no work now" in waits(world, buyer, job_id)
        world.clock.advance(601)
        ask_again(agents)
        play.sign()
        assert play.form()

    def test_it_says_when_no_orchestrator_is_there_or_its_port_is_taken(self, world: World, buyer: Person, play: Play) -> None:
        job_id = play.job(buyer, 2)
        assert "no agent online offers any (gridx-worker run --ddp-slots N does)" in waits(world, buyer, job_id)
        play.sign("port 50051 on 127.0.0.1 is taken")
        assert "port 50051 on 127.0.0.1 is taken" in waits(world, buyer, job_id)
        world.clock.advance(20)
        assert "none runs" in waits(world, buyer, job_id)

    def test_a_reservation_times_out_and_frees_its_members(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b c")
        job_id = play.job(buyer, 3)
        assert play.form()
        came = ask_again(agents[:2])
        for each in came:
            each.register()
        assert "rank 2 (c) has not come yet" in waits(world, buyer, job_id)
        world.clock.advance(31)
        play.sign()
        assert play.form()
        assert {each.agent.name: each.beat() for each in came}["a"].startswith("the gang was stopped: rank 2 (c) did not come")  # pyright: ignore[reportOptionalMemberAccess]
        for each in came:
            each.ask()
        world.clock.advance(2)
        assert not play.form(), "c is not given another before it asked again"
        assert "only 2 are offered; 1 more are missing" in waits(world, buyer, job_id)
        agents[2].ask()
        play.finish(play.start(agents))
        assert world.view(buyer, job_id)["status"] == "COMPLETED"

    def test_an_old_gang_is_not_overtaken_for_ever(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 3)
        young = play.job(buyer, 2)
        world.clock.advance(forming.PATIENCE_S + 1)
        play.sign()
        ask_again(agents)
        assert not play.form()
        assert world.view(buyer, young)["status"] == "RUNNING"
        agents += play.agents("c")
        assert len(play.start(agents)) == 3


class TestPay:
    def test_every_rank_once_when_rank_0s_model_is_verified(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b c")
        job_id = play.job(buyer, 3, time_limit_s=7200)
        assert world.credits(buyer) == 94
        gang = play.start(agents)
        gang[1].leave()
        gang[1].leave()
        gang[0].agent.finish(weights(2.0), loss=0.5)
        world.drain()
        view = world.view(buyer, job_id)
        assert (view["status"], [subtask["status"] for subtask in view["subtasks"]]) == ("RUNNING", ["COMPLETED", "COMPLETED", "RUNNING"])
        gang[2].leave()
        view = world.view(buyer, job_id)
        assert (view["status"], view["completed_subtasks"], view["paid"], view["held"]) == ("COMPLETED", 3, 6, 0)
        assert [world.credits(each.agent.owner) for each in gang] == [102, 102, 102]
        model = torch.load(io.BytesIO(world.model(buyer, job_id)), weights_only=True)
        assert float(model["fc.bias"][0]) == 2.0

    def test_a_rank_lost_after_the_model_is_there_is_not_paid(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b c")
        job_id = play.job(buyer, 3)
        gang = play.start(agents)
        gang[1].leave()
        gang[0].agent.finish(weights())
        gang[2].agent.fail("agent", "out of disk")
        world.drain()
        view = world.view(buyer, job_id)
        assert (view["status"], view["paid"], view["held"]) == ("COMPLETED", 2, 0)
        assert world.credits(buyer) == 98
        assert world.credits(gang[2].agent.owner) == 100

    def test_a_rank_that_hangs_at_its_end_does_not_hold_the_job_up(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        gang = play.start(agents)
        gang[0].agent.finish(weights())
        world.drain()
        world.clock.advance(forming.STRAGGLER_S - 5)
        gang[1].beat()
        assert not play.form()
        assert world.view(buyer, job_id)["status"] == "RUNNING"
        world.clock.advance(10)
        assert play.form()
        view = world.view(buyer, job_id)
        assert (view["status"], view["paid"], view["held"]) == ("COMPLETED", 1, 0)
        assert "had not ended 60 s after" in (gang[1].beat() or "")

    def test_never_by_attempt(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        for _ in range(2):
            gang = play.start(agents)
            gang[1].leave()
            gang[0].agent.fail("agent", "Docker failed")
            play.pause()
            ask_again(agents)
        play.finish(play.start(agents))
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert [world.credits(each.agent.owner) for each in agents] == [101, 101]
        with world.database.read() as session:
            references = session.scalars(select(Transfer.reference).where(Transfer.reference.like("subtask:%"))).all()
        assert len(references) == len(set(references)) == 2

    def test_a_refused_model_pays_nobody_and_the_gang_starts_anew(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        gang = play.start(agents)
        play.finish(gang, b"no model at all")
        view = world.view(buyer, job_id)
        assert (view["status"], view["paid"]) == ("RUNNING", 0)
        assert {subtask["status"] for subtask in view["subtasks"]} == {"PENDING"}
        play.pause()
        ask_again(agents)
        play.finish(play.start(agents))
        assert world.view(buyer, job_id)["status"] == "COMPLETED"

    @pytest.mark.parametrize("when", ["forming", "training", "one has left", "uploaded"])
    def test_cancelled(self, world: World, buyer: Person, play: Play, when: str) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        gang: list[RankAgent] = []
        if when == "forming":
            assert play.form()
        else:
            gang = play.start(agents)
        if when in ("one has left", "uploaded"):
            gang[1].leave()
        if when == "uploaded":
            gang[0].agent.finish(weights())
        assert world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers).status_code == 200
        play.drain()
        view = world.view(buyer, job_id)
        assert (view["status"], view["held"], view["paid"]) == ("CANCELLED", 0, 2 if when == "uploaded" else 0)
        assert world.credits(buyer) == (98 if when == "uploaded" else 100)
        assert not play.form()
        if when == "training":
            assert "cancelled" in (gang[0].beat() or "")


class TestFaults:
    def test_one_rank_that_ends_frees_the_others_at_once(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b c")
        job_id = play.job(buyer, 3)
        gang = play.start(agents)
        gang[1].agent.fail("memory", "the script used more than 2048 MB of memory")
        assert gang[0].beat() == "the gang was stopped: rank 1 (b): the script used more than 2048 MB of memory"
        assert gang[2].agent.about("heartbeat").json()["cancel"] is True
        assert "gang 1 was stopped" in waits(world, buyer, job_id)
        events = [event["text"] for event in world.view(buyer, job_id)["events"]]
        assert "gang 1 was stopped: rank 1 (b): the script used more than 2048 MB of memory" in events

    def test_the_scripts_fault_shown_by_two_sellers_ends_the_job_and_pays_both(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        for culprit in (0, 1):
            gang = play.start(agents)
            gang[culprit].agent.fail("script", "the script exited with code 1\nKeyError: 'no such column'")
            play.pause()
            ask_again(agents)
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "KeyError" in view["reason"]
        assert "two providers" in view["reason"]
        assert (world.credits(buyer), [world.credits(each.agent.owner) for each in agents]) == (98, [101, 101])

    def test_one_seller_alone_needs_no_other(self, world: World, buyer: Person, play: Play) -> None:
        owner = world.person("sam@sellers.example.com", "seller")
        agents = play.agents("a b", owner=owner)
        job_id = play.job(buyer, 2)
        for _ in range(2):
            play.start(agents)[1].agent.fail("script", "ValueError: x")
            play.pause()
            ask_again(agents)
        assert world.view(buyer, job_id)["status"] == "FAILED"
        assert (world.credits(buyer), world.credits(owner)) == (100, 100)

    def test_a_lost_connection_is_not_the_scripts_fault_but_its_cause_may_be(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        for _ in range(2):
            gang = play.start(agents)
            lost = (
                "the script exited with code 1\nRuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer [127.0.0.1]:4711"
            )
            assert gang[0].agent.fail("script", lost).status_code == 200
            assert gang[1].agent.fail("script", "the script exited with code 1\nKeyError: 'x'").status_code == 200
            play.pause()
            ask_again(agents)
        view = world.view(buyer, job_id)
        assert view["status"] == "RUNNING", "the same seller twice is no proof while another takes part"
        play.start(agents)[0].agent.fail("script", "KeyError: 'x'")
        assert world.view(buyer, job_id)["status"] == "FAILED"

    def test_lost_machines_end_the_job_at_last(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        for _ in range(10):
            play.start(agents)[0].agent.fail("shutdown", "the agent was told to stop")
            play.pause()
            ask_again(agents)
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "10 gangs were lost" in view["reason"]
        assert world.credits(buyer) == 100

    def test_a_silent_rank_loses_its_lease(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        gang = play.start(agents)
        alive: str | None = None
        for _ in range(7):
            world.clock.advance(10)
            world.expire()
            alive = gang[0].beat()
        assert alive is not None
        assert "rank 1 (b): its agent was not heard of" in alive
        assert world.view(buyer, job_id)["status"] == "RUNNING"

    def test_an_agent_started_anew_in_the_middle_breaks_the_gang(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        gang[1].ask()
        gang[1].instance = "second"
        assert gang[1].register().refused == "its agent was started anew while it held the rank"
        assert "started anew" in (gang[0].beat() or "")

    def test_unreachable_pairs_are_named(self, world: World, buyer: Person, play: Play) -> None:
        agents = [*play.agent("a", place="network:lab", address="10.0.0.1"), *play.agent("b", place="network:lab", address="10.0.0.2")]
        job_id = play.job(buyer, 2)
        assert play.form()
        gang = sorted(ask_again(agents), key=lambda each: each.rank)
        for each in gang:
            each.register(29500, 30000 + each.rank)
        assert gang[0].ready().peers == ()
        found = gang[1].ready()
        assert (found.can_start, found.peers) == (False, ((0, "10.0.0.1", 30000),))
        assert not gang[0].ready(reached=[1]).can_start
        stopped = gang[1].ready(unreachable=[0])
        assert stopped.stop == "rank 1 (b) cannot reach rank 0 (a) at 10.0.0.1:30000"
        events = [event["text"] for event in world.view(buyer, job_id)["events"]]
        assert f"gang 1 was stopped: {stopped.stop}" in events
        play.pause()
        ask_again(agents)
        assert play.form()
        gang = sorted(ask_again(agents), key=lambda each: each.rank)
        for each in gang:
            each.register(29500, 30000 + each.rank)
            each.ready()
        gang[0].ready(reached=[1])
        ready = gang[1].ready(reached=[0])
        assert (ready.can_start, ready.master_address, ready.master_port) == (True, "10.0.0.1", 29500)


class TestStrangers:
    def test_what_is_not_ones_own(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        thief = RankAgent(world, world.agent("thief"), task=gang[1].task)
        calls: list[Any] = [thief.register, thief.ready, thief.beat, thief.leave]
        for call in calls:
            with pytest.raises(LeaseLost):
                call()
        gang[1].task = gang[1].task | {"lease_token": "guessed"}
        with pytest.raises(LeaseLost):
            gang[1].beat()

    def test_a_registration_that_is_replayed_after_the_end(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        again = gang[1].register()
        assert (again.rank, again.refused) == (1, None)
        play.finish(gang)
        with pytest.raises(LeaseLost):
            gang[1].register()

    def test_ranks_and_names_out_of_range(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        with pytest.raises(Invalid, match="out of range"):
            gang[0].ready(reached=[2**31])
        gang[0].task["gang"]["rank"] = 7
        with pytest.raises(Invalid, match="rank 7 is not this attempt's"):
            gang[0].beat()
        with pytest.raises(Invalid):
            gang[1].register(port=70_000)

    def test_a_rank_cannot_leave_before_the_start(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        assert play.form()
        gang = sorted(ask_again(agents), key=lambda each: each.rank)
        gang[1].register()
        with pytest.raises(Invalid, match="not begun"):
            gang[1].leave()

    def test_options_without_a_meaning_are_refused(self, world: World, buyer: Person) -> None:
        answer = world.submit(buyer, mode="ddp", chunks=2, rounds=3, strategy="krum", min_updates=1)
        assert answer.status_code == 422
        for name in ("rounds", "strategy", "min_updates"):
            assert f"{name}: has no meaning in mode ddp" in answer.json()["detail"]


class TestCheckpoints:
    def state(self, epoch: int) -> dict[str, torch.Tensor]:
        return {"t0": torch.full((3,), float(epoch)), "skeleton": torch.tensor([123, 125], dtype=torch.uint8)}

    def test_the_next_gang_starts_from_the_last_one(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        job_id = play.job(buyer, 2)
        gang = play.start(agents)
        assert gang[0].task["gang"]["checkpoint_url"] is None
        for epoch in (1, 2, 3):
            assert gang[0].save(epoch, self.state(epoch)) == 200
            play.drain()
        assert gang[0].save(3, self.state(3)) == 200
        gang[1].agent.fail("shutdown", "told to stop")
        play.pause()
        ask_again(agents)
        gang = play.start(agents)
        link = gang[1].task["gang"]["checkpoint_url"]
        kept = torch.load(io.BytesIO(world.api.get(link).content), weights_only=True)
        assert float(kept["t0"][0]) == 3.0
        with world.database.read() as session:
            assert [row.key is not None for row in session.scalars(select(Checkpoint).order_by(Checkpoint.id))] == [False, True, True]
        play.finish(gang)
        assert world.view(buyer, job_id)["status"] == "COMPLETED"

    def test_a_hostile_one_is_refused_and_the_one_before_stays(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        assert gang[0].save(1, self.state(1)) == 200
        play.drain()
        assert gang[0].save(2, b"PK\x03\x04 no archive") == 200
        play.drain()
        with world.database.read() as session:
            assert list(session.scalars(select(Checkpoint.status).order_by(Checkpoint.id))) == ["SEALED", "REFUSED"]
            assert forming.latest_checkpoint(session, 1) is not None

    def test_rank_0_alone_and_only_while_it_trains(self, world: World, buyer: Person, play: Play) -> None:
        agents = play.agents("a b")
        play.job(buyer, 2)
        gang = play.start(agents)
        assert gang[1].save(1, self.state(1)) == Forbidden.status
        play.finish(gang)
        assert gang[0].save(1, self.state(1)) == LeaseLost.status
