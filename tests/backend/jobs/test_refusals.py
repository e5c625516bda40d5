"""Updates that are refused and scripts that fail: by name, with the reason on the job, unpaid or paid, and tried again where that helps."""

import os
import pickle
import zipfile
from io import BytesIO
from typing import Any

import pytest
import torch
from torch import nn

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import FakeAgent, World, pth, weights


class Gadget:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch /tmp/gridx-gadget-ran",)


def gadget() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Gadget()}))
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


BAD_UPLOADS: dict[str, tuple[bytes, str]] = {
    "nan": (pth(weights(float("nan"))), "finite"),
    "truncated": (pth(weights())[:-200], ""),
    "gadget": (gadget(), ""),
    "whole module": (pth(nn.Linear(2, 3)), "state_dict"),
    "empty": (b"", "0 bytes"),
    "nested": (pth({"model": weights()}), ""),
}


def attempts(world: World, buyer: Person, job_id: int, chunk: int) -> list[dict[str, Any]]:
    return next(subtask for subtask in world.view(buyer, job_id)["subtasks"] if subtask["chunk"] == chunk)["attempts"]


class TestOneBadUpdate:
    @pytest.mark.parametrize("name", BAD_UPLOADS)
    def test_is_refused_by_name_unpaid_and_the_chunk_goes_to_another_seller(self, world: World, buyer: Person, name: str) -> None:
        data, words = BAD_UPLOADS[name]
        bad, good = world.agent("bad"), world.agent("good")
        job_id = world.job(buyer, chunks=1)
        bad.request()
        bad.finish(data)
        world.drain()
        [attempt] = attempts(world, buyer, job_id, 0)
        assert attempt["status"] == "REFUSED"
        assert words in attempt["reason"]
        assert bad.request()["task_id"] is None, "another seller is online and comes first"
        good.request()
        good.finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert (world.credits(bad.owner), world.credits(good.owner)) == (100, 101)
        assert not os.path.exists("/tmp/gridx-gadget-ran")

    def test_an_upload_that_is_not_what_was_announced_is_refused(self, world: World, buyer: Person) -> None:
        agent, other = world.agent("a"), world.agent("b")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        agent.upload(pth(weights(2.0)))
        assert agent.complete(pth(weights(1.0))).status_code == 200
        world.drain()
        assert "SHA-256" in attempts(world, buyer, job_id, 0)[0]["reason"]
        assert other.request()["task_id"] is not None

    def test_a_file_that_did_not_fit_is_let_go(self, world: World, buyer: Person) -> None:
        agent, other = world.agent("a"), world.agent("b")
        job_id = world.job(buyer, chunks=2, rounds=2)
        for one in (agent, other):
            one.request()
            one.finish(weights())
        world.drain()
        agent.request()
        agent.finish({"other": torch.zeros(2)})
        world.drain()
        items = world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]
        assert [item for item in items if item["kind"] == "update" and item["round"] == 2] == []

    def test_complete_before_upload_is_refused_with_words(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        answer = agent.complete(b"abc")
        assert (answer.status_code, answer.json()["code"]) == (400, "nothing_uploaded")


class TestUpdatesThatDiffer:
    def later_rounds(self, world: World, buyer: Person, state: dict[str, torch.Tensor]) -> str:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=2, rounds=2)
        for agent in agents:
            agent.request()
            agent.finish(weights())
        world.drain()
        agents[0].request()
        agents[0].finish(state)
        world.drain()
        [attempt] = attempts(world, buyer, job_id, agents[0].task["chunk"])
        assert attempt["status"] == "REFUSED"
        assert world.credits(agents[0].owner) == 101
        return attempt["reason"]

    def test_a_missing_key_is_named(self, world: World, buyer: Person) -> None:
        state = weights()
        del state["fc.bias"]
        assert "fc.bias" in self.later_rounds(world, buyer, state)

    def test_a_wrong_shape_is_named_with_both_shapes(self, world: World, buyer: Person) -> None:
        reason = self.later_rounds(world, buyer, weights() | {"fc.weight": torch.zeros(2, 2)})
        assert "fc.weight" in reason
        assert "3" in reason

    def test_a_wrong_dtype_is_named(self, world: World, buyer: Person) -> None:
        assert "fc.bias" in self.later_rounds(world, buyer, weights() | {"fc.bias": torch.zeros(3, dtype=torch.float64)})


class TestChunkThatLacksAClass:
    """Round 1 has no model to compare with: the majority of chunks decides, and the odd chunk is told what it lacks."""

    def lacking(self) -> dict[str, torch.Tensor]:
        return {"fc.weight": torch.zeros(2, 2), "fc.bias": torch.zeros(2)}

    def test_reproduced_by_a_second_seller_the_job_fails_and_the_fault_is_paid_from_what_is_left(self, world: World, buyer: Person) -> None:
        agents = [world.agent(name) for name in "abc"]
        job_id = world.job(buyer, chunks=3)
        for agent in agents:
            agent.request()
        odd = agents[2].task["chunk"]
        for agent in agents:
            agent.finish(self.lacking() if agent is agents[2] else weights())
        world.drain()
        assert attempts(world, buyer, job_id, odd)[0]["status"] == "REFUSED"
        assert world.credits(agents[2].owner) == 100
        agents[0].request()
        assert agents[0].task["chunk"] == odd
        agents[0].finish(self.lacking())
        world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert f"chunk {odd}" in view["reason"]
        assert "class" in view["reason"]
        # Three credits were held: two accepted updates, and one that was left for the first who showed the fault.
        assert [world.credits(agent.owner) for agent in agents] == [101, 101, 101]
        assert sum(world.credits(agent.owner) - 100 for agent in agents) + world.credits(buyer) == 100
        assert world.wallet(buyer)["held"] == 0

    def test_updates_wait_until_a_majority_agrees(self, world: World, buyer: Person) -> None:
        agents = [world.agent(name) for name in "abc"]
        job_id = world.job(buyer, chunks=3)
        for agent in agents:
            agent.request()
        agents[0].finish(weights())
        world.drain()
        assert {subtask["status"] for subtask in world.view(buyer, job_id)["subtasks"]} == {"VERIFYING", "RUNNING"}
        agents[1].finish(weights())
        world.drain()
        assert [subtask["status"] for subtask in world.view(buyer, job_id)["subtasks"]].count("COMPLETED") == 2

    def test_one_seller_with_most_chunks_does_not_decide_alone(self, world: World, buyer: Person) -> None:
        seller = world.person("many@example.com", "seller")
        many = [world.agent(f"m{index}", seller) for index in range(3)]
        others = [world.agent("x"), world.agent("y")]
        job_id = world.job(buyer)
        for agent in (*many, *others):
            agent.request()
        for agent in many:
            agent.finish(self.lacking())
        others[0].finish(weights())
        world.drain()
        assert {subtask["status"] for subtask in world.view(buyer, job_id)["subtasks"]} == {"VERIFYING", "RUNNING"}

    def test_when_none_agree_the_job_fails_with_the_difference(self, world: World, buyer: Person) -> None:
        agent = world.agent("only")
        job_id = world.job(buyer, chunks=2)
        for _ in range(4):
            task = agent.request()
            if task["task_id"] is None:
                break
            agent.finish(weights() if task["chunk"] == 0 else self.lacking())
            world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "fc." in view["reason"]
        assert world.credits(buyer) == 99, "the chunk that was never refused is verified and paid"


class TestScriptsFault:
    def test_the_same_failure_from_two_sellers_fails_the_job_and_pays_both(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=5)
        for agent in agents:
            agent.request()
        agents[0].fail("script", "KeyError: 'label'")
        agents[1].finish(weights())
        world.drain()
        agents[1].request()
        while agents[1].task["chunk"] != agents[0].task["chunk"]:
            agents[1].finish(weights())
            agents[1].request()
        agents[1].fail("script", "KeyError: 'label'")
        world.drain()
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "KeyError: 'label'" in view["reason"]
        assert "two providers" in view["reason"]
        assert world.credits(agents[0].owner) == 101
        assert world.credits(buyer) + sum(world.credits(agent.owner) - 100 for agent in agents) == 100
        assert world.wallet(buyer)["held"] == 0

    def test_twice_in_a_one_seller_pool_fails_the_job_unpaid(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        for _ in range(2):
            assert agent.request()["task_id"] is not None
            agent.fail("output", "the script wrote no model.pth")
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "model.pth" in view["reason"]
        assert (world.credits(buyer), world.credits(agent.owner)) == (100, 100)

    def test_the_escrow_is_never_overdrawn_by_paying_for_a_reproduced_failure(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        world.job(buyer, chunks=1)
        for agent in agents:
            agent.request()
            agent.fail()
        assert [world.credits(agent.owner) for agent in agents] == [101, 100]
        assert world.credits(buyer) == 99

    def test_two_different_exceptions_reproduce_nothing(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=1)
        for agent, reason in zip(agents, ("KeyError: 'label'", "Traceback ...\nOSError: [Errno 28] No space left on device"), strict=True):
            agent.request()
            agent.fail("script", reason)
        assert world.view(buyer, job_id)["status"] == "RUNNING"

    def test_different_failures_use_up_three_attempts(self, world: World, buyer: Person) -> None:
        agents = [world.agent(name) for name in "abc"]
        job_id = world.job(buyer, chunks=1)
        for agent, kind in zip(agents, ("script", "memory", "timeout"), strict=True):
            assert agent.request()["task_id"] is not None
            agent.fail(kind, f"{kind} trouble")
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        for kind in ("script", "memory", "timeout"):
            assert f"{kind} trouble" in view["reason"]
        assert world.credits(buyer) == 100


class TestAgentsTrouble:
    def test_shutdown_gives_the_chunk_back_at_once_to_anybody(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        agent.fail("shutdown", "the machine is being turned off")
        assert agent.request()["task_id"] is not None

    def test_trouble_of_the_machine_waits_a_little_and_never_counts_as_the_scripts(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        for _ in range(4):
            assert agent.request()["task_id"] is not None
            agent.fail("agent", "no space left on the disk")
            assert agent.request()["task_id"] is None
            world.clock.advance(64)
            agent.about("heartbeat")
        assert world.view(buyer, job_id)["status"] == "RUNNING"

    def test_machines_that_keep_vanishing_end_the_subtask_at_last(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        for _ in range(10):
            assert agent.request()["task_id"] is not None
            agent.fail("shutdown", "the machine is being turned off")
        assert world.view(buyer, job_id)["status"] == "FAILED"
        assert world.credits(buyer) == 100


def test_a_failed_job_still_pays_uploads_that_were_waiting(world: World, buyer: Person) -> None:
    agents: list[FakeAgent] = [world.agent(name) for name in "abc"]
    job_id = world.job(buyer, chunks=3)
    for agent in agents:
        agent.request()
    agents[2].finish(weights())
    chunk = agents[0].task["chunk"]
    agents[0].fail()
    world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers)
    assert chunk is not None
    world.drain()
    assert world.credits(agents[2].owner) == 101
    assert world.credits(buyer) == 99
    assert world.wallet(buyer)["held"] == 0
