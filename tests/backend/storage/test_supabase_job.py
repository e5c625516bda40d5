"""A whole job whose files lie in Supabase Storage: agents and buyers use the storage's own links."""

import hashlib
import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import torch

from gridx.background.sweep import sweep_storage
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.storage.local import LocalStore
from gridx.storage.supabase import SupabaseStore
from gridx_protocol import UploadUrlRequest
from gridx_worker.client import Client, Refused
from tests.backend.conftest import FakeClock
from tests.backend.jobs.conftest import FakeAgent, World, make_world, pth, weights
from tests.support.fake_supabase import FakeSupabase


class Both(httpx.BaseTransport):
    """The server's addresses lead into the application, all others to the network."""

    def __init__(self, world: World) -> None:
        self._server, self._network = world.api._transport, httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return (self._server if request.url.host == "testserver" else self._network).handle_request(request)


@pytest.fixture
def world(
    sqlite_database: Database, settings: Settings, clock: FakeClock, supabase: SupabaseStore
) -> Iterator[World]:  # the SQL runs on both databases elsewhere
    made = make_world(sqlite_database, settings, clock, cast(LocalStore, supabase))
    with made.api:
        yield made
        assert made.ledger_problems() == []
    made.work.keeper.close()


def client_of(world: World, agent: FakeAgent) -> Client:
    client = Client("http://testserver", stop=threading.Event(), transport=Both(world), first_pause_s=0.01)
    client.token = agent.token
    return client


def train(world: World, agent: FakeAgent, folder: Path, state: dict[str, torch.Tensor]) -> dict[str, Any]:
    """One task by the real agent's client: inputs by link, the update by link."""
    task = agent.request()
    client = client_of(world, agent)
    until = time.monotonic() + 20
    for name in ("code", "chunk_data", "global_model"):
        if task[f"{name}_url"]:
            expected = task["chunk_sha256" if name == "chunk_data" else f"{name}_sha256"]
            client.download(task[f"{name}_url"], folder / name, sha256=expected, cap=10**6, until=until, check=lambda: None)
    data = pth(state)
    (folder / "model.pth").write_bytes(data)
    place = UploadUrlRequest(task_id=task["task_id"], lease_token=task["lease_token"], size=len(data))
    client.upload(place, folder / "model.pth", until=until, check=lambda: None)
    client.close()
    assert agent.complete(data, loss=0.5).status_code == 200
    return task


def test_two_rounds_to_completed(world: World, fake: FakeSupabase, tmp_path: Path) -> None:
    buyer = world.person("ada@buyers.example.com")
    job_id = world.job(buyer, chunks=2, rounds=2)
    agents = [world.agent("one"), world.agent("two")]
    for number in (1, 2):
        for index, agent in enumerate(agents):
            task = train(world, agent, tmp_path, weights(float(number + index)))
            assert task["chunk_data_url"].startswith(fake.url)
        world.drain()
    assert world.view(buyer, job_id)["status"] == "COMPLETED"
    url = world.api.get(f"/jobs/download/{job_id}", headers=buyer.headers).json()["final_result_url"]
    assert url.startswith(f"{fake.url}/storage/v1/object/sign/")
    model = torch.load(io.BytesIO(httpx.get(url).content), weights_only=True)
    assert torch.equal(model["fc.bias"], torch.full((3,), 2.5))
    assert [world.credits(agent.owner) for agent in agents] == [102, 102]
    kept = world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]
    for item in kept:
        assert hashlib.sha256(httpx.get(item["url"]).content).hexdigest() == item["sha256"] or item["sha256"] is None
    assert {item["kind"] for item in kept} >= {"final_model", "global_model", "script"}


def test_deleting_the_job_empties_its_folder(world: World, fake: FakeSupabase, tmp_path: Path) -> None:
    buyer = world.person("ada@buyers.example.com")
    job_id = world.job(buyer, chunks=1)
    train(world, world.agent("one"), tmp_path, weights())
    world.drain()
    assert world.api.delete(f"/jobs/{job_id}", headers=buyer.headers).status_code == 200
    assert [key for key in fake.buckets["gridx-files"].objects if not key.startswith("datasets/")] == []


def test_the_sweep_takes_what_nothing_points_at(world: World, fake: FakeSupabase, tmp_path: Path) -> None:
    buyer = world.person("ada@buyers.example.com")
    job_id = world.job(buyer, chunks=1)
    train(world, world.agent("one"), tmp_path, weights())
    world.drain()
    needed = set(fake.buckets["gridx-files"].objects)
    fake.put("gridx-files", f"jobs/{job_id}/uploads/late.pth", b"x", "", "")
    fake.put("gridx-files", "datasets/1/orphan.csv", b"x", "", "")
    assert sweep_storage(world.work) == 2  # the clock of these tests is years ahead: everything is old
    assert set(fake.buckets["gridx-files"].objects) == needed


class TestUpload:
    @pytest.fixture
    def agent(self, world: World) -> FakeAgent:
        world.job(world.person("ada@buyers.example.com"), chunks=1)
        agent = world.agent("one")
        agent.request()
        return agent

    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        path = tmp_path / "model.pth"
        path.write_bytes(pth(weights()))
        return path

    def send(self, world: World, agent: FakeAgent, model: Path) -> None:
        place = UploadUrlRequest(task_id=agent.task["task_id"], lease_token=agent.task["lease_token"], size=model.stat().st_size)
        client = client_of(world, agent)
        try:
            client.upload(place, model, until=time.monotonic() + 10, check=lambda: None)
        finally:
            client.close()

    @pytest.mark.parametrize(("kind", "status"), [("refuse", 503), ("refuse", 409), ("refuse", 423), ("drop", 0), ("forget", 0)])
    def test_trouble_of_the_storage_is_tried_again(
        self, world: World, fake: FakeSupabase, agent: FakeAgent, model: Path, kind: Any, status: int
    ) -> None:
        fake.fail("PUT /object/upload/sign", kind, status=status)
        self.send(world, agent, model)
        assert agent.complete(model.read_bytes()).status_code == 200

    def test_an_expired_link_is_asked_for_anew(self, world: World, fake: FakeSupabase, agent: FakeAgent, model: Path) -> None:
        fake.link_s = 0
        thread = threading.Timer(0.1, lambda: setattr(fake, "link_s", 60))
        thread.start()
        self.send(world, agent, model)
        thread.join()
        assert fake.requests.count(next(line for line in fake.requests if line.startswith("PUT"))) > 1
        assert agent.complete(model.read_bytes()).status_code == 200

    def test_more_than_the_project_takes_is_final(self, world: World, fake: FakeSupabase, agent: FakeAgent, model: Path) -> None:
        fake.size_limit = 10
        with pytest.raises(Refused, match="maximum allowed size") as caught:
            self.send(world, agent, model)
        assert caught.value.status == 413

    def test_more_than_was_announced_is_not_taken(self, agent: FakeAgent, model: Path) -> None:
        link = agent.about("upload_url", size=model.stat().st_size).json()
        assert httpx.put(link["url"], content=model.read_bytes() + b"more", headers=link["headers"]).status_code == 200
        answer = agent.complete(model.read_bytes())
        assert (answer.status_code, answer.json()["code"]) == (400, "nothing_uploaded")

    def test_more_than_the_settings_allow_is_not_taken_and_not_kept(
        self, world: World, fake: FakeSupabase, agent: FakeAgent, model: Path
    ) -> None:
        link = agent.about("upload_url", size=10).json()
        world.settings.max_update_bytes = 100
        assert httpx.put(link["url"], content=model.read_bytes(), headers=link["headers"]).status_code == 200
        answer = agent.complete(model.read_bytes())
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert [key for key in fake.buckets["gridx-files"].objects if "upload" in key] == []


def test_the_storage_being_away_is_said_with_503_and_passes(world: World, fake: FakeSupabase, tmp_path: Path) -> None:
    buyer = world.person("ada@buyers.example.com")
    world.job(buyer, chunks=1)
    agent = world.agent("one")
    fake.fail("POST /object/sign")
    answer = agent.call("request_task")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    train(world, agent, tmp_path, weights())  # the same attempt, handed out again
    world.drain()
    assert agent.request()["task_id"] is None


def test_files_of_this_server_are_served_elsewhere(world: World) -> None:
    assert world.api.get("/files/a?expires=1&method=GET&sig=x").status_code == 404
