"""A job from submission to its final model, with what it costs and pays."""

import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gridx.core.errors import Unavailable
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import CSV, World, pth, weights


def load(data: bytes) -> dict[str, torch.Tensor]:
    return torch.load(io.BytesIO(data), weights_only=True)


def run_round(world: World, agents: list[Any], states: dict[int, Any]) -> None:
    """Each agent takes what it gets and uploads the state of that chunk."""
    for agent in itertools.cycle(agents):
        if agent.request()["task_id"] is None:
            break
        agent.finish(states[agent.task["chunk"]], loss=0.5, accuracy=0.9)
    world.drain()


class TestSeedJob:
    def test_five_chunks_cost_five_credits_and_pay_five(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer)
        assert world.credits(buyer) == 95
        assert world.wallet(buyer)["held"] == 5
        run_round(world, agents, {chunk: weights(float(chunk)) for chunk in range(5)})
        view = world.view(buyer, job_id)
        assert (view["status"], view["completed_subtasks"], view["total_subtasks"]) == ("COMPLETED", 5, 5)
        assert world.credits(buyer) == 95
        assert sum(world.credits(agent.owner) - 100 for agent in agents) == 5
        assert world.wallet(buyer)["held"] == 0

    def test_model_is_the_row_weighted_float64_mean_within_one_ulp(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        generator = torch.Generator().manual_seed(7)
        states = {chunk: {"w": torch.randn(41, 13, generator=generator) * 100} for chunk in range(5)}
        csv = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(53))  # 11, 11, 11, 10, 10 rows
        job_id = world.job(buyer, csv=csv)
        rows = {subtask["chunk"]: subtask["rows"] for subtask in world.view(buyer, job_id)["subtasks"]}
        run_round(world, [agent], states)
        expected = sum((states[chunk]["w"].double().numpy() * rows[chunk] for chunk in range(5)), np.zeros((41, 13))) / 53
        merged = load(world.model(buyer, job_id))["w"]
        assert merged.dtype == torch.float32
        ulp = np.spacing(np.abs(expected.astype(np.float32)))
        assert np.all(np.abs(merged.double().numpy() - expected) <= ulp)

    def test_any_arrival_order_gives_the_same_bytes(self, world: World, buyer: Person) -> None:
        agents = [world.agent(f"a{index}") for index in range(3)]
        generator = torch.Generator().manual_seed(1)
        states = {chunk: {"w": torch.randn(64, generator=generator)} for chunk in range(3)}
        models: set[bytes] = set()
        for order in itertools.permutations(range(3)):
            job_id = world.job(buyer, chunks=3, seed=5)
            for agent in agents:
                agent.request()
            for index in order:
                agents[index].finish(states[agents[index].task["chunk"]])
                world.drain()
            models.add(world.model(buyer, job_id))
        assert len(models) == 1

    def test_counters_and_half_precision_survive(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        state = {
            "bn.num_batches_tracked": torch.tensor(17),
            "half": torch.full((4,), 1.5, dtype=torch.float16),
            "brain": torch.full((4,), 2.5, dtype=torch.bfloat16),
            "mask": torch.tensor([True, False]),
        }
        job_id = world.job(buyer, chunks=2)
        run_round(world, [agent], {0: state, 1: state})
        merged = load(world.model(buyer, job_id))
        assert list(merged) == list(state)
        for name, tensor in state.items():
            assert merged[name].dtype == tensor.dtype
            assert merged[name].shape == tensor.shape
            assert torch.equal(merged[name], tensor)


class TestRounds:
    def test_each_round_starts_from_the_last_global_model(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=2, rounds=3)
        assert world.credits(buyer) == 94
        for number in (1, 2, 3):
            seeds: set[int] = set()
            for agent in agents:
                task = agent.request()
                assert (task["round"], task["rounds"]) == (number, 3)
                assert (task["global_model_url"] is None) == (number == 1)
                if number > 1:
                    start = load(world.api.get(task["global_model_url"]).content)
                    assert torch.equal(start["fc.bias"], torch.full((3,), float(number - 1)))
                seeds.add(task["seed"])
            assert len(seeds) == 1
            for agent in agents:
                agent.finish(weights(float(number)), loss=1 / number, accuracy=0.5)
            world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "COMPLETED"
        assert [row["updates_used"] for row in view["round_list"]] == [2, 2, 2]
        assert view["round_list"][0]["step_norm"] is None
        assert view["round_list"][1]["step_norm"] == pytest.approx(3.0)  # nine weights, each moved by 1
        assert view["round_list"][2]["mean_loss"] == pytest.approx(1 / 3)

    def test_an_agent_gets_the_chunk_again_that_it_trained_before(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b"), world.agent("c")]
        world.job(buyer, chunks=3, rounds=2)
        chunks = {agent.name: agent.request()["chunk"] for agent in agents}
        for agent in agents:
            agent.finish(weights())
        world.drain()
        assert {agent.name: agent.request()["chunk"] for agent in reversed(agents)} == chunks

    def test_updates_of_merged_rounds_are_deleted_and_those_of_the_last_kept(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=2, rounds=2)
        for _ in range(4):
            agent.request()
            agent.finish(weights())
            world.drain()
        kinds = [
            (item["kind"], item["round"]) for item in world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]
        ]
        assert kinds.count(("update", 2)) == 2
        assert ("update", 1) not in kinds
        assert ("global_model", 1) in kinds
        stored = [info.key for info in world.store.list(f"jobs/{job_id}/")]
        assert not [key for key in stored if "/uploads/" in key]
        assert len([key for key in stored if "/updates/" in key]) == 2


class TestCancel:
    def test_uploaded_updates_are_paid_and_the_rest_comes_back(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer)
        for agent in agents:
            agent.request()
        agents[0].finish(weights())
        answer = world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers)
        assert answer.status_code == 200
        assert world.credits(buyer) == 99
        assert agents[1].about("heartbeat").json()["cancel"] is True
        assert agents[1].complete(b"x").status_code == 409
        assert agents[1].fail("script").json()["code"] == "lease_lost"
        world.drain()
        assert world.credits(agents[0].owner) == 101
        assert world.credits(agents[1].owner) == 100
        assert world.wallet(buyer) == {"user_id": buyer.id, "credits": 99, "held": 0, "role": "buyer"}
        assert world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers).status_code == 200

    def test_before_preparation_everything_comes_back(self, world: World, buyer: Person) -> None:
        job_id = world.submit(buyer).json()["job_id"]
        world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers)
        world.drain()
        assert world.credits(buyer) == 100
        assert world.view(buyer, job_id)["status"] == "CANCELLED"

    def test_a_completed_job_cannot_be_cancelled(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=1)
        run_round(world, [world.agent("a")], {0: weights()})
        answer = world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "job_not_finished")


class TestDelete:
    def test_a_running_job_is_kept(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer)
        assert world.api.delete(f"/jobs/{job_id}", headers=buyer.headers).status_code == 409

    def test_a_finished_job_takes_its_files_along(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=1)
        run_round(world, [world.agent("a")], {0: weights()})
        assert world.api.delete(f"/jobs/{job_id}", headers=buyer.headers).status_code == 200
        assert list(world.store.list(f"jobs/{job_id}/")) == []
        assert world.api.get(f"/jobs/{job_id}", headers=buyer.headers).status_code == 404
        assert world.credits(buyer) == 99


class TestMinUpdates:
    def test_a_round_closes_without_a_chunk_that_failed(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b"), world.agent("c")]
        job_id = world.job(buyer, chunks=2, min_updates=1)
        agents[0].request()
        agents[0].finish(weights(3.0))
        for agent, kind in zip(agents, ("script", "memory", "timeout"), strict=True):
            agent.request()
            agent.fail(kind, f"{kind} trouble")
        world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "COMPLETED"
        assert view["round_list"][0]["updates_used"] == 1
        assert world.credits(buyer) == 99


class TestForcedAggregation:
    def test_an_administrator_closes_a_round_with_what_is_there(self, world: World, buyer: Person) -> None:
        from gridx.background.force import force_aggregate

        agent = world.agent("a")
        job_id = world.job(buyer, chunks=3)
        for _ in range(2):
            agent.request()
            agent.finish(weights(4.0))
        world.drain()
        world.settings.home.mkdir(parents=True, exist_ok=True)
        (world.settings.home / "objects").symlink_to(world.store.root)
        assert force_aggregate(world.settings, job_id) == f"job {job_id} is now COMPLETED"
        assert torch.equal(load(world.model(buyer, job_id))["fc.bias"], torch.full((3,), 4.0))
        assert world.credits(buyer) == 98

    def test_updates_that_wait_for_a_majority_are_verified_paid_and_merged(self, world: World, buyer: Person) -> None:
        from gridx.background.force import force_aggregate

        agents = [world.agent(name) for name in "ab"]
        job_id = world.job(buyer, chunks=5, rounds=2)
        for agent in agents:
            agent.request()
            agent.finish(weights(4.0))
        world.drain()
        assert world.view(buyer, job_id)["completed_subtasks"] == 0
        world.settings.home.mkdir(parents=True, exist_ok=True)
        (world.settings.home / "objects").symlink_to(world.store.root)
        assert force_aggregate(world.settings, job_id) == f"job {job_id} is now RUNNING"
        assert [world.credits(agent.owner) for agent in agents] == [101, 101]
        view = world.view(buyer, job_id)
        assert (view["current_round"], view["round_list"][0]["updates_used"]) == (2, 2)
        assert [subtask["status"] for subtask in view["subtasks"]] == ["PENDING"] * 5


class TestResults:
    def test_means_are_weighted_by_rows_and_broken_down_by_agent(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=2, csv=b"x\n" + b"1\n" * 3)
        for agent, loss in zip(agents, (1.0, 4.0), strict=True):
            agent.request()
            agent.about("metrics", points=[{"seq": 0, "epoch": 1, "loss": 9.0}, {"seq": 1, "epoch": 2, "loss": loss}])
            agent.finish(weights(), loss=loss, accuracy=0.5)
        world.drain()
        results = world.api.get(f"/jobs/{job_id}/results", headers=buyer.headers).json()
        assert results["mean_loss"] == pytest.approx((2 * 1.0 + 1 * 4.0) / 3)
        assert results["rows"] == 3
        assert [(row["agent_id"], row["rows"], row["mean_loss"]) for row in results["per_agent"]] == [("a", 2, 1.0), ("b", 1, 4.0)]
        series = world.api.get(f"/jobs/{job_id}/metrics", headers=buyer.headers).json()["items"]
        assert [(item["agent_id"], item["epoch"], item["loss"]) for item in series] == [
            ("a", 1, 9.0),
            ("a", 2, 1.0),
            ("b", 1, 9.0),
            ("b", 2, 4.0),
        ]

    def test_each_agents_course_over_the_rounds_can_be_read(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1, rounds=2)
        for loss in (2.0, 1.0):
            agent.request()
            agent.about("metrics", points=[{"seq": 0, "epoch": 1, "loss": loss}])
            agent.finish(weights(), loss=loss)
            world.drain()
        results = world.api.get(f"/jobs/{job_id}/results", headers=buyer.headers).json()
        assert [(row["round"], row["agent_id"], row["mean_loss"]) for row in results["per_round"]] == [(1, "a", 2.0), (2, "a", 1.0)]
        second = world.api.get(f"/jobs/{job_id}/metrics?round=2", headers=buyer.headers).json()["items"]
        assert [(item["round"], item["loss"]) for item in second] == [(2, 1.0)]


def test_rows_are_dealt_without_losing_one(world: World, buyer: Person) -> None:
    agent = world.agent("a")
    world.job(buyer, chunks=4)
    records: list[bytes] = []
    for _ in range(4):
        task = agent.request()
        chunk = world.api.get(task["chunk_data_url"]).content
        header, *lines = chunk.splitlines(keepends=True)
        assert header == b"x,y\n"
        assert len(lines) == task["rows"]
        records += lines
        agent.finish(pth(weights()))
    assert sorted(records) == sorted(CSV.splitlines(keepends=True)[1:])


class TestOutage:
    def test_a_store_that_is_away_for_long_costs_nobody_anything(
        self, world: World, buyer: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        agent.finish(weights())

        def away(key: str, path: Path) -> None:
            raise Unavailable("the storage cannot be reached")

        with monkeypatch.context() as patch:
            patch.setattr(world.store, "put_file", away)
            for _ in range(12):
                world.drain()
                world.clock.advance(61)
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert world.credits(agent.owner) == 101
