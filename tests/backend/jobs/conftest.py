"""A whole server in one process: the real application and the real background steps, driven by hand; agents that speak HTTP."""

import hashlib
import io
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import select

from gridx.app import create_app
from gridx.background.aggregate import aggregate_next
from gridx.background.export import export_next
from gridx.background.lateness import look_after_rounds
from gridx.background.leases import expire_leases
from gridx.background.prepare import prepare_next
from gridx.background.verify import verify_next
from gridx.background.work import Work
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.jobs.models import Job
from gridx.ledger import check as ledger_check
from gridx.storage.local import LocalStore
from tests.backend.conftest import FakeClock, Person

pytest.register_assert_rewrite("tests.backend.jobs.kill_matrix", "tests.backend.jobs.market")

HARDWARE: dict[str, Any] = {
    "hostname": "lab-pc-07",
    "os": "Linux 6.1",
    "cores": 8,
    "ram_bytes": 16 * 2**30,
    "disk_free_bytes": 100 * 2**30,
    "python_version": "3.11.7",
    "torch_version": "2.13.0",
    "isolation": "docker",
}
SCRIPT = "import torch\ntorch.save({'w': torch.zeros(2)}, 'model.pth')\n"
CSV = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n % 3) for n in range(50))


class InlineExecutor(Executor):
    """Runs what is submitted at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def weights(value: float = 1.0, **more: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"fc.weight": torch.full((3, 2), value), "fc.bias": torch.full((3,), value), **more}


def pth(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


@dataclass
class FakeAgent:
    """An agent as the wire sees it."""

    api: TestClient
    name: str
    token: str
    owner: Person
    task: dict[str, Any] = field(default_factory=dict[str, Any])

    def call(self, path: str, **body: Any) -> Response:
        return self.api.post(f"/agent/{path}", json=body, headers={"Authorization": f"Bearer {self.token}"})

    def request(self) -> dict[str, Any]:
        answer = self.call("request_task")
        assert answer.status_code == 200, answer.text
        self.task = answer.json()
        return self.task

    def about(self, path: str, **body: Any) -> Response:
        return self.call(path, task_id=self.task["task_id"], lease_token=self.task["lease_token"], **body)

    def upload(self, data: bytes) -> Response:
        link = self.about("upload_url", size=len(data))
        assert link.status_code == 200, link.text
        return self.api.put(link.json()["url"], content=data, headers=link.json()["headers"])

    def complete(self, data: bytes, **metrics: float) -> Response:
        return self.about("complete_task", sha256=hashlib.sha256(data).hexdigest(), size=len(data), metrics=metrics)

    def finish(self, state: Any, **metrics: float) -> Response:
        """Upload and complete the task in hand."""
        data = state if isinstance(state, bytes) else pth(state)
        assert self.upload(data).status_code == 204
        answer = self.complete(data, **metrics)
        assert answer.status_code == 200, answer.text
        return answer

    def fail(self, kind: str = "script", reason: str = "ValueError: no such column") -> Response:
        return self.about("fail_task", kind=kind, reason=reason)


@dataclass
class World:
    api: TestClient
    database: Database
    settings: Settings
    clock: FakeClock
    store: LocalStore
    work: Work

    def person(self, email: str, role: str = "buyer") -> Person:
        answer = self.api.post("/auth/register", json={"email": email, "password": "correct horse", "role": role})
        assert answer.status_code == 201, answer.text
        token = self.api.post("/auth/login", json={"email": email, "password": "correct horse"}).json()["access_token"]
        self.api.cookies.clear()
        return Person(answer.json()["id"], token)

    def agent(self, name: str, owner: Person | None = None, **hardware: Any) -> FakeAgent:
        """A registered machine, of a seller of its own unless `owner` is given."""
        owner = owner or self.person(f"{name}@sellers.example.com", "seller")
        key = self.api.post("/agent/keys", json={"label": name}, headers=owner.headers).json()["key"]
        body = {"agent_id": name, "hardware": HARDWARE | hardware}
        answer = self.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.text
        return FakeAgent(self.api, name, answer.json()["token"], owner)

    def submit(
        self, buyer: Person, *, csv: bytes = CSV, script: str = SCRIPT, headers: dict[str, str] | None = None, **fields: Any
    ) -> Response:
        return self.api.post(
            "/jobs/upload",
            data={"title": "a job", **fields},
            files={"file_code": ("train.py", script.encode()), "file_data": ("data.csv", csv)},
            headers=buyer.headers | (headers or {}),
        )

    def job(self, buyer: Person, **options: Any) -> int:
        """A submitted job that is prepared."""
        answer = self.submit(buyer, **options)
        assert answer.status_code == 201, answer.text
        self.drain()
        return answer.json()["job_id"]

    def drain(self) -> None:
        """Run background work until there is none."""
        while any(step(self.work) for step in (prepare_next, verify_next, aggregate_next, export_next)):
            pass

    def expire(self) -> int:
        return expire_leases(self.work)

    def look_after_rounds(self) -> int:
        return look_after_rounds(self.work)

    def view(self, buyer: Person, job_id: int, **query: Any) -> dict[str, Any]:
        answer = self.api.get(f"/jobs/{job_id}", headers=buyer.headers, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def credits(self, person: Person) -> int:
        return self.wallet(person)["credits"]

    def wallet(self, person: Person) -> dict[str, Any]:
        return self.api.get(f"/auth/wallet/{person.id}", headers=person.headers).json()

    def model(self, buyer: Person, job_id: int) -> bytes:
        url = self.api.get(f"/jobs/download/{job_id}", headers=buyer.headers).json()["final_result_url"]
        return self.api.get(url).content

    def ledger_problems(self) -> list[str]:
        with self.database.read() as session:
            return ledger_check.check(session)

    def job_row(self, job_id: int) -> Job:
        with self.database.read() as session:
            return session.scalars(select(Job).where(Job.id == job_id)).one()


def make_world(
    database: Database, settings: Settings, clock: FakeClock, store: LocalStore, client: Callable[[FastAPI], TestClient] = TestClient
) -> World:
    settings.database_url = database.url.replace("postgresql+psycopg://", "postgresql://")
    app = create_app(settings, clock=clock, store=store)
    work = Work(settings, database, store, clock, InlineExecutor())
    return World(client(app), database, settings, clock, store, work)


@pytest.fixture
def world(database: Database, settings: Settings, clock: FakeClock, store: LocalStore) -> Iterator[World]:
    made = make_world(database, settings, clock, store)
    with made.api:
        yield made
        assert made.ledger_problems() == []
    made.work.keeper.close()


@pytest.fixture
def buyer(world: World) -> Person:
    return world.person("ada@buyers.example.com")
