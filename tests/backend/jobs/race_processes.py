"""What test_races has done by two processes. They import this module anew: without torch, which would be most of the time."""

import multiprocessing
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from gridx.accounts.service import Actor
from gridx.agents import service as agents
from gridx.core.clock import SystemClock
from gridx.core.db import Database
from gridx.core.errors import GridxError
from gridx.core.settings import Settings
from gridx.jobs import claims, dispatch, service
from gridx.jobs.options import JobOptions
from gridx.jobs.service import Submission
from gridx.storage.local import LocalStore
from gridx_protocol import CompleteRequest
from tests.backend.conftest import SECRET, FakeClock

_TOGETHER_S = 60


def _settings(url: str, home: str) -> Settings:
    return Settings(home=Path(home), database_url=url, jwt_secret_key=SecretStr(SECRET), _env_file=None)  # pyright: ignore[reportCallIssue]


def submit_in_process(url: str, home: str, buyer_id: int, dataset_id: int, count: int, barrier: Any, answers: Any) -> None:
    settings = _settings(url, home)
    database, store = Database(settings.sqlalchemy_url), LocalStore(Path(home) / "objects", SECRET)
    actor = Actor(buyer_id, "ada@buyers.example.com", "buyer")
    order = Submission(JobOptions(title="race"), dataset_id, b"print(1)", b"")
    barrier.wait(_TOGETHER_S)
    codes: list[str] = []
    for _ in range(count):
        try:
            service.submit(database, store, actor, order, SystemClock().now(), settings)
            codes.append("made")
        except GridxError as error:
            codes.append(error.code)
    answers.put(codes)


def claim_in_process(url: str, home: str, tokens: list[str], barrier: Any, answers: Any) -> None:
    settings = _settings(url, home)
    database = Database(settings.sqlalchemy_url)
    barrier.wait(_TOGETHER_S)
    got: list[tuple[int, str]] = []
    for token in tokens:
        with database.write() as session:
            actor = agents.authenticate(session, token)
            claim = claims.claim(session, actor, [], SystemClock().now(), settings)
            if claim is not None:
                got.append((claim.subtask_id, claim.lease_token))
    answers.put(got)


def complete_in_process(url: str, home: str, token: str, body: dict[str, Any], count: int, barrier: Any, answers: Any) -> None:
    settings = _settings(url, home)
    database = Database(settings.sqlalchemy_url)
    barrier.wait(_TOGETHER_S)
    codes: list[str] = []
    for _ in range(count):
        try:
            with database.write() as session:
                actor = agents.authenticate(session, token)
                codes.append(dispatch.complete(session, actor, CompleteRequest(**body), FakeClock().now(), settings))
        except GridxError as error:
            codes.append(error.code)
    answers.put(codes)


def cancel_in_process(url: str, home: str, buyer_id: int, job_id: int, count: int, barrier: Any, answers: Any) -> None:
    database = Database(_settings(url, home).sqlalchemy_url)
    barrier.wait(_TOGETHER_S)
    codes: list[str] = []
    for _ in range(count):
        with database.write() as session:
            codes.append(service.cancel(session, Actor(buyer_id, "ada@buyers.example.com", "buyer"), job_id, FakeClock().now()).status)
    answers.put(codes)


def either(target: Callable[..., None], *arguments: Any) -> None:
    target(*arguments)


def in_two_processes(target: Callable[..., None], *arguments: tuple[Any, ...]) -> list[Any]:
    """Run `target` twice, in processes of their own that start at the same moment; returns what they answered."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    processes = [context.Process(target=target, args=(*parts, barrier, answers), daemon=True) for parts in arguments]
    try:
        for process in processes:
            process.start()
        found: list[Any] = []
        while len(found) < len(processes):
            try:
                found.append(answers.get(timeout=1))
            except queue.Empty:
                codes = [process.exitcode for process in processes]
                assert not any(codes), f"one ended without an answer: {codes}"  # nobody waits for who is dead
        for process in processes:
            process.join(30)
            assert process.exitcode == 0
        return found
    finally:
        for process in processes:
            process.kill()
