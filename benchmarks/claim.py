"""Claiming work on PostgreSQL: ours against the same SQL by psycopg alone, per CPU second spent; and eight processes at once.

    python benchmarks/claim.py [--subtasks 2000] [--processes 8]

A private PostgreSQL is started for it. The peer repeats, statement by statement, what one of our claims sent (recorded from the
driver), with its own values filled in: the limit of any Python program that does the same work.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import event, func, select, text
from sqlalchemy.engine import make_url

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gridx.agents.service import AgentActor
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.jobs import claims
from gridx.jobs.models import Attempt, Subtask
from tests.support import databases, postgres, session

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WARM_UP = 20
"""Claims before the clock starts: statements get compiled, and prepared by the driver."""
_FIRST_SUBTASK = 1_000_000  # unlike any other number in the recorded statements
SETTINGS = Settings(_env_file=None)  # pyright: ignore[reportCallIssue]


@dataclass(frozen=True)
class Spent:
    """Seconds: of the clock, of this process's CPU, and of the CPU of the database's process that serves it."""

    wall: float
    client: float
    server: float

    @classmethod
    def until_now(cls, server: int) -> "Spent":
        fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
        return cls(time.perf_counter(), time.process_time(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.wall - other.wall, self.client - other.client, self.server - other.server)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subtasks", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=8)
    args = parser.parse_args()
    os.environ.setdefault("GRIDX_LOG_LEVEL", "ERROR")
    session.begin()
    try:
        with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
            run(Path(name), args.subtasks, args.processes)
    finally:
        postgres.stop()
        session.end()


def run(folder: Path, subtasks: int, processes: int) -> None:
    alone = subtasks // processes
    url = databases.create("postgresql", folder)
    fill(url, subtasks)
    statements, taken = record(url)
    print(f"one claim sends {len(statements)} statements\n")
    print(f"{'what':34} {'claims':>7} {'wall s':>8} {'client CPU s':>13} {'server CPU s':>13} {'claims per core s':>18}")
    counted = alone - WARM_UP
    ours = claim_many(url, 1, alone)
    show("ours, one process", counted, ours)
    peer = replay_many(url, statements, taken, 1 + alone, alone)
    show("the same SQL by psycopg alone", counted, peer)
    ratio = (peer.client + peer.server) / (ours.client + ours.server)
    print(f"\nours reaches {ratio:.0%} of the limit per core spent ({peer.client / ours.client:.0%} by the client's CPU alone)\n")
    url = databases.create("postgresql", folder)
    fill(url, subtasks)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=claim_many, args=(url, 1 + index * alone, alone)) for index in range(processes)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    wall = time.perf_counter() - begun
    database = Database(url)
    with database.read() as opened:
        attempts = opened.scalar(select(func.count()).select_from(Attempt))
        given = opened.scalar(select(func.count(func.distinct(Attempt.subtask_id))))
        left = opened.scalar(select(func.count()).select_from(Subtask).where(Subtask.status == "PENDING"))
    database.dispose()
    print(f"{processes} processes: {attempts} claims of {given} different subtasks, {left} left, {wall:.1f} s with the processes' start")
    if attempts != given or left != subtasks - alone * processes:
        sys.exit("a subtask was given twice, or not at all")


def claim_many(url: str, first: int, count: int) -> Spent:
    """Claim once for each of `count` agents, from number `first` on; what all but the first few took."""
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    database = Database(url, pool_size=1)
    with database.read() as opened:
        server = opened.scalar(text("SELECT pg_backend_pid()")) or 0
    begun = Spent.until_now(server)
    for number in range(first, first + count):
        if number == first + WARM_UP:
            begun = Spent.until_now(server)
        with database.write() as opened:
            if claims.claim(opened, actor(number), [], NOW, SETTINGS) is None:
                raise RuntimeError("there was no work left")
    spent = Spent.until_now(server) - begun
    database.dispose()
    return spent


def record(url: str) -> tuple[list[tuple[str, Any]], int]:
    """The statements of one claim as the driver got them, and the subtask it took. The claim is rolled back."""
    database, sent = Database(url, pool_size=1), list[tuple[str, Any]]()

    @event.listens_for(database.engine, "before_cursor_execute")
    def _listen(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: Any) -> None:
        sent.append((statement, parameters))

    class RollBack(Exception):
        pass

    taken = 0
    try:
        with database.write() as opened:
            claim = claims.claim(opened, actor(0), [], NOW, SETTINGS)
            taken = claim.subtask_id if claim is not None else 0
            raise RollBack
    except RollBack:
        pass
    database.dispose()
    return sent, taken


def replay_many(url: str, statements: list[tuple[str, Any]], taken: int, first: int, count: int) -> Spent:
    """Send the recorded statements again and again, each time for another agent and the subtask that its own pick returned.

    What all but the first few took.
    """
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    pick = next(index for index, (text, _) in enumerate(statements) if "SKIP LOCKED" in text)
    with psycopg.connect(plain, autocommit=False) as connection:
        begun = Spent.until_now(connection.info.backend_pid)
        for number in range(first, first + count):
            if number == first + WARM_UP:
                begun = Spent.until_now(connection.info.backend_pid)
            swaps: dict[Any, Any] = {"agent-0": f"agent-{number}"}
            for index, (text, values) in enumerate(statements):
                cursor = connection.execute(text.encode(), {name: _swap(value, swaps) for name, value in values.items()})
                rows = cursor.fetchall() if cursor.description else []
                if index == pick:
                    swaps[taken] = rows[0][0]
            connection.commit()
        return Spent.until_now(connection.info.backend_pid) - begun


def _swap(value: Any, swaps: dict[Any, Any]) -> Any:
    return swaps.get(value, value) if isinstance(value, str | int) else value


def show(what: str, count: int, spent: Spent) -> None:
    rate = count / (spent.client + spent.server)
    print(f"{what:34} {count:7} {spent.wall:8.2f} {spent.client:13.2f} {spent.server:13.2f} {rate:18.0f}")


def actor(number: int) -> AgentActor:
    return AgentActor(f"agent-{number}", 2, 2**34, 0, 0)


def fill(url: str, subtasks: int) -> None:
    """A buyer with a running job of so many subtasks, and a seller with as many agents."""
    from sqlalchemy import insert

    from gridx.accounts.models import User
    from gridx.agents.models import Agent, EnrolmentKey
    from gridx.datasets.models import Chunk, Dataset
    from gridx.jobs.models import Job, Round

    database = Database(url)
    person = {"password_hash": "x", "token_epoch": 0, "is_disabled": False, "created_at": NOW}
    dataset = {"name": "d", "rows": 1, "columns": ["x"], "delimiter": ",", "bytes": 1, "sha256": "0" * 64, "object_key": "d"}
    job = {
        "owner_id": 1, "title": "t", "status": "RUNNING", "dataset_id": 1, "script_key": "s", "script_sha256": "0" * 64,
        "arguments": [], "hyperparameters": {}, "chunks": subtasks, "rounds": 1, "partitioner": "iid", "strategy": "fedavg", "seed": 0,
        "min_updates": 1, "time_limit_s": 3600, "needs": {}, "needs_ram_bytes": 0, "needs_gpus": 0, "needs_vram_bytes": 0, "units": 1,
        "price": subtasks, "total_subtasks": subtasks, "current_round": 1, "warnings": [], "created_at": NOW,
    }  # fmt: skip
    numbers = range(subtasks + 1)
    machine = {"owner_id": 2, "key_id": 1, "hardware": {}, "ram_bytes": 2**34, "gpu_count": 0, "vram_bytes": 0}
    with database.write() as opened:
        opened.execute(insert(User), [{"email": f"{role}@example.com", "role": role, **person} for role in ("buyer", "seller")])
        opened.execute(insert(EnrolmentKey), [{"owner_id": 2, "label": "k", "key_hash": "k", "created_at": NOW}])
        seen = {"registered_at": NOW, "last_seen_at": NOW}
        opened.execute(insert(Agent), [{"id": f"agent-{n}", "token_hash": str(n), **machine, **seen} for n in numbers])
        opened.execute(insert(Dataset), [{"owner_id": 1, "header_end": 2, "scan": {}, "warnings": [], "created_at": NOW, **dataset}])
        opened.execute(insert(Job), [job])
        opened.execute(insert(Round), [{"job_id": 1, "number": 1, "opened_at": NOW}])
        chunk = {"dataset_id": 1, "job_id": 1, "rows": 1, "bytes": 1, "sha256": "0" * 64, "object_key": "c"}
        opened.execute(insert(Chunk), [{"index": n, **chunk} for n in range(subtasks)])
        subtask = {"job_id": 1, "round_id": 1, "round_number": 1, "kind": "train", "status": "PENDING", "rows": 1}
        opened.execute(insert(Subtask), [{"id": _FIRST_SUBTASK + n, "chunk_index": n, **subtask} for n in range(subtasks)])
    database.dispose()


if __name__ == "__main__":
    main()
