"""What comes out of a job beside its model: files of the script, safetensors, and one list of all of it."""

import hashlib
import io
from typing import Any

import pytest
import torch
from httpx import Response
from safetensors.torch import load

from gridx.background.sweep import sweep_storage
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import FakeAgent, World, pth, weights


def leave(agent: FakeAgent, name: str, content: bytes) -> Response:
    link = agent.about("output_url", name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
    if link.status_code == 200:
        assert agent.api.put(link.json()["url"], content=content, headers=link.json()["headers"]).status_code == 204
    return link


def listed(world: World, buyer: Person, job_id: int) -> list[dict[str, Any]]:
    return world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]


class TestOutputs:
    def test_are_listed_with_all_that_is_known_once_the_update_is_accepted(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        leave(agent, "curve.csv", b"epoch,loss\n1,0.5\n")
        assert [item for item in listed(world, buyer, job_id) if item["kind"] == "output"] == []
        agent.about("metrics", points=[{"seq": 0, "epoch": 3, "loss": 0.5}])
        agent.finish(weights())
        world.drain()
        [item] = [item for item in listed(world, buyer, job_id) if item["kind"] == "output"]
        content = b"epoch,loss\n1,0.5\n"
        expected = {"filename": "curve.csv", "round": 1, "chunk": 0, "agent_id": "a", "epoch": 3, "size": len(content)}
        assert expected.items() <= item.items()
        assert item["subtask_id"] == agent.task["task_id"]
        assert item["sha256"] == hashlib.sha256(content).hexdigest()
        answer = world.api.get(item["url"])
        assert answer.content == content
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "sandbox" in answer.headers["content-security-policy"]

    def test_caps_hold_on_the_server_too(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        assert agent.about("output_url", name="big", size=64 * 2**20 + 1, sha256="0" * 64).json()["code"] == "too_large"
        for number in range(20):
            assert leave(agent, f"f{number}", b"x").status_code == 200
        assert leave(agent, "f3", b"again").status_code == 200, "the same name takes the earlier one's place"
        assert leave(agent, "f20", b"x").json()["code"] == "too_many_outputs"

    @pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "x" * 101, "a\nb"])
    def test_names_that_are_paths_are_refused(self, world: World, buyer: Person, name: str) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        assert leave(agent, name, b"x").status_code == 422

    def test_of_a_refused_attempt_are_swept_and_of_an_accepted_one_stay(self, world: World, buyer: Person) -> None:
        bad, good = world.agent("bad"), world.agent("good")
        job_id = world.job(buyer, chunks=1)
        bad.request()
        leave(bad, "x.txt", b"bad")
        bad.finish(pth(weights(float("nan"))))
        world.drain()
        good.request()
        leave(good, "x.txt", b"good")
        good.finish(weights())
        world.drain()
        sweep_storage(world.work)
        [item] = [item for item in listed(world, buyer, job_id) if item["kind"] == "output"]
        assert world.store.stat(item["url"].split("?")[0].removeprefix("/files/")) is not None
        assert len(list(world.store.list(f"jobs/{job_id}/outputs/"))) == 1

    def test_somebody_elses_lease_leaves_nothing(self, world: World, buyer: Person) -> None:
        agent, other = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=1)
        agent.request()
        other.task = agent.task
        assert leave(other, "x", b"x").status_code == 409


class TestSafetensors:
    def test_hold_the_final_models_tensors_bit_for_bit(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        state = weights(0.1) | {"count": torch.tensor(7), "half": torch.ones(2, dtype=torch.bfloat16)}
        job_id = world.job(buyer, chunks=1)
        agent.request()
        agent.finish(state)
        world.drain()
        [item] = [item for item in listed(world, buyer, job_id) if item["kind"] == "safetensors"]
        content = world.api.get(item["url"]).content
        assert (item["filename"], item["size"], item["sha256"]) == (
            "final_model.safetensors", len(content), hashlib.sha256(content).hexdigest(),
        )  # fmt: skip
        merged = torch.load(io.BytesIO(world.model(buyer, job_id)), weights_only=True)
        found = load(content)
        assert set(found) == set(merged)
        for name, tensor in merged.items():
            assert found[name].dtype == tensor.dtype
            assert torch.equal(found[name], tensor)

    def test_is_there_once_whatever_the_sweep_does(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        agent.finish(weights())
        world.drain()
        sweep_storage(world.work)
        [info] = [info for info in world.store.list(f"jobs/{job_id}/") if info.key.endswith(".safetensors")]
        assert info.size > 0

    def test_a_job_that_failed_has_none(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        for _ in range(2):
            agent.request()
            agent.fail()
        world.drain()
        assert {item["kind"] for item in listed(world, buyer, job_id)} == {"script", "schema"}
