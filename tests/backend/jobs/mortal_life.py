"""Lives of a job in processes that die where they are told to: `python -m tests.backend.jobs.mortal_life URL HOME` reads orders by lines.

Each order is lived by a forked child of its own: as the first server that may die at a point, or as the one that is started after it.
Between them the caller puts the database and the home back as they were when the first line, "ready", was written.
A point is any step that outlives the process, and any step of the job's state: before a commit, before a file is put, between its
writing and its appearance, before it is deleted, before a status moves.
"""

import gc
import hashlib
import json
import logging
import multiprocessing
import os
import re
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import structlog
import torch
from passlib.hash import bcrypt_sha256  # pyright: ignore[reportAttributeAccessIssue] - made at run time
from pydantic import SecretStr
from sqlalchemy import Engine, event, select

import gridx.jobs.states
from gridx.accounts import passwords
from gridx.aggregation import safe_load
from gridx.background.sweep import sweep_storage
from gridx.background.work import Work
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.datasets.models import Chunk, Dataset
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import JOB_ENDS
from gridx.ledger.models import Entry, LedgerAccount, Transfer
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock, Person
from tests.backend.direct_client import DirectClient
from tests.backend.jobs.conftest import CSV, SCRIPT, FakeAgent, InlineExecutor, World, make_world, pth

KILLED = 137
_DOWN_S = 600.0
"""So long the server stays away: all leases of background work have run out by then."""
_MOST_TURNS = 60


@dataclass(frozen=True)
class Order:
    """`die_at` counts points from 1; 0 means never. With `after_death` the life goes on that another process began."""

    story: str
    die_at: int = 0
    after_death: bool = False
    is_rehearsal: bool = False
    """Lived by the process that forks the others: imports, statements and routes are ready in all that follow."""


@dataclass
class Report:
    """What one life came to. `problems` is empty when nothing was wrong on the way."""

    status: str
    model_sha256: str | None
    credits: dict[str, int]
    payments: dict[str, list[int]]
    """Subtask as `round/chunk` -> what was paid for it, each payment on its own."""
    kept: dict[str, int]
    """Kinds of objects in the store after the last sweep -> how many."""
    problems: list[str] = field(default_factory=list[str])


class Fate:
    """Counts the points of a life, notes their names, and ends the process at one of them."""

    def __init__(self, die_at: int, notes: Path) -> None:
        self._die_at = die_at
        self._count = 0
        self._notes = notes.open("w")
        self.is_sealed = False

    def point(self, name: str) -> None:
        if not self.is_sealed:
            return
        self._count += 1
        self._notes.write(f"{name}\n")
        self._notes.flush()
        if self._count == self._die_at:
            os._exit(KILLED)

    def watch(self) -> None:
        """Put a point before everything that outlives the process."""
        event.listen(Engine, "commit", lambda _connection: self.point("commit"))
        _before(LocalStore, "put_file", lambda _store, key, _path: self.point(f"put {_kind(key)}"))
        _before(
            LocalStore, "_place", lambda store, _temporary, target: self.point(f"place {_kind(target.relative_to(store.root).as_posix())}")
        )
        _before(LocalStore, "delete", lambda _store, key: self.point(f"delete {_kind(key)}"))
        plain = gridx.jobs.states.move
        for module in [module for name, module in sys.modules.items() if name.startswith("gridx.")]:
            if getattr(module, "move", None) is plain:
                _before(module, "move", lambda _session, row, to, **_: self.point(f"move {type(row).__name__} {to}"))


def _before(place: Any, name: str, look: Callable[..., None]) -> None:
    original = getattr(place, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        look(*arguments, **named)
        return original(*arguments, **named)

    setattr(place, name, watched)


@dataclass
class Cast:
    buyer: Person
    agents: list[FakeAgent]

    @classmethod
    def hired(cls, world: World, folder: Path) -> "Cast":
        """The same people in every process of a life: what a client knows survives the server."""
        note = folder / "cast.json"
        if not note.exists():
            buyer, agents = world.person("ada@buyers.example.com"), [world.agent("a"), world.agent("b")]
            people = {"buyer": asdict(buyer), "agents": [(agent.name, agent.token, asdict(agent.owner)) for agent in agents]}
            note.write_text(json.dumps(people))
        known = json.loads(note.read_text())
        return cls(Person(**known["buyer"]), [FakeAgent(world.api, name, token, Person(**owner)) for name, token, owner in known["agents"]])


# The stories: what clients do, again and again until it is acknowledged. Told anew after a death, they come to the same end.


def trained(world: World, cast: Cast) -> None:
    """Two rounds of two chunks; one update is refused, one attempt fails."""
    job_id = _submitted(world, cast, rounds=2)
    for _ in range(_MOST_TURNS):
        world.drain()
        if world.view(cast.buyer, job_id)["status"] in JOB_ENDS:
            return
        for agent in cast.agents:
            task = agent.request()
            if task["task_id"] is None:
                continue
            place = (task["round"], task["chunk"], task["attempt"])
            assert agent.about("heartbeat", phase="TRAINING").json()["cancel"] is False
            if place == (2, 0, 1):
                assert agent.fail("agent", "the disk is full").status_code == 200
            else:
                agent.finish(_update(task["round"], task["chunk"], is_bad=place == (1, 1, 1)))
        world.clock.advance(5)
        world.expire()


def cancelled(world: World, cast: Cast) -> None:
    """The buyer cancels when one update is uploaded and another machine is at work: one credit is earned, the rest comes back."""
    job_id = _submitted(world, cast, rounds=1)
    for _ in range(_MOST_TURNS):
        uploaded = [row for row in world.view(cast.buyer, job_id)["subtasks"] if row["status"] in ("VERIFYING", "COMPLETED")]
        if uploaded or world.view(cast.buyer, job_id)["status"] in JOB_ENDS:
            break
        world.drain()
        tasks = [agent.request() for agent in cast.agents]
        if tasks[0]["task_id"] is not None:
            cast.agents[0].finish(_update(1, tasks[0]["chunk"]))
        world.clock.advance(5)
        world.expire()
    assert world.api.post(f"/jobs/{job_id}/cancel", headers=cast.buyer.headers).status_code == 200
    world.drain()


STORIES: dict[str, Callable[[World, Cast], None]] = {"trained": trained, "cancelled": cancelled}


def _submitted(world: World, cast: Cast, rounds: int) -> int:
    answer = world.submit(cast.buyer, csv=CSV, script=SCRIPT, headers={"Idempotency-Key": "k"}, chunks=2, rounds=rounds, seed=5)
    assert answer.status_code == 201, answer.text
    return answer.json()["job_id"]


def _update(round_number: int, chunk: int, *, is_bad: bool = False) -> bytes:
    value = float("nan") if is_bad else 10.0 * round_number + chunk
    return pth({"fc.weight": torch.full((3, 2), value), "fc.bias": torch.full((3,), value / 3)})


# One life.


class Stage:
    """A server that has not opened its database yet, and what it needs to begin again and again."""

    def __init__(self, url: str, home: Path) -> None:
        self._home = home
        self._clock = FakeClock()
        self._began_at = self._clock.now()
        options = Settings(home=home, jwt_secret_key=SecretStr(SECRET), _env_file=None)  # pyright: ignore[reportCallIssue]
        store = LocalStore(home / "objects", SECRET, clock=self._clock)
        self._world = make_world(Database(url), options, self._clock, store, DirectClient)
        self._world.work.keeper.close()  # a fork takes no threads along
        self._world.database = self._world.api.app.state.database  # pyright: ignore[reportFunctionMemberAccess] - half the connections

    def hire(self) -> None:
        with self._world.api:
            Cast.hired(self._world, self._home)
        self._world.database.dispose()

    def live(self, order: Order) -> Report:
        world, clock, problems = self._world, self._clock, list[str]()
        clock.advance((self._began_at - clock.now()).total_seconds())
        world.work = Work(world.settings, world.database, world.store, clock, InlineExecutor())
        fate = Fate(order.die_at, self._home / "points")
        if not order.is_rehearsal:
            fate.watch()
        with world.api:
            cast = Cast.hired(world, self._home)
            if order.after_death:
                clock.advance(_DOWN_S)
                problems += _wrong(world, "after the restart")
                sweep_storage(world.work)
                problems += _wrong(world, "after the first sweep")
                world.expire()
            fate.is_sealed = True
            STORIES[order.story](world, cast)
            fate.is_sealed = False
            _age(self._home)
            clock.advance(2 * 24 * 3600)
            sweep_storage(world.work)
            problems += _wrong(world, "at the end")
            report = _report(world, cast, problems)
        world.work.keeper.close()
        world.database.dispose()
        return report

    def note(self, order: Order) -> None:
        (self._home / "report.json").write_text(json.dumps(asdict(self.live(order))))

    def be(self, order: Order) -> NoReturn:
        """Live, as a process of its own."""
        try:
            self.note(order)
        except BaseException:
            (self._home / "error").write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)


def _wrong(world: World, when: str) -> list[str]:
    """A ledger that is not clean, and rows that point at files which are gone or not whole."""
    found = world.ledger_problems()
    with world.database.read() as session:
        pointed = [(chunk.object_key, chunk.sha256) for chunk in session.scalars(select(Chunk))]
        pointed += [(row.object_key, row.sha256) for row in session.scalars(select(Dataset))]
        pointed += [(job.script_key, job.script_sha256) for job in session.scalars(select(Job))]
        pointed += [(row.global_model_key, row.global_model_sha256 or "") for row in session.scalars(select(Round)) if row.global_model_key]
        attempts = session.scalars(select(Attempt)).all()
        pointed += [(row.update_key, (row.summary or {}).get("sha256", "")) for row in attempts if row.update_key]
        pointed += [(row.upload_key, row.upload_sha256 or "") for row in attempts if row.status == "VERIFYING" and row.summary is None]
    for key, sha256 in pointed:
        if world.store.stat(key) is None:
            found.append(f"{_kind(key)} is pointed at and is not there")
        elif hashlib.sha256(world.store.path(key).read_bytes()).hexdigest() != sha256:
            found.append(f"{_kind(key)} is not whole")
    return [f"{when}: {problem}" for problem in found]


def _report(world: World, cast: Cast, problems: list[str]) -> Report:
    jobs = world.api.get(f"/jobs/list/{cast.buyer.id}", headers=cast.buyer.headers).json()
    if len(jobs) != 1:
        problems.append(f"{len(jobs)} jobs came of one order")
    job_id = jobs[0]["id"] if "id" in jobs[0] else jobs[0]["job_id"]
    view = world.view(cast.buyer, job_id)
    for item in world.api.get(f"/jobs/{job_id}/artifacts", headers=cast.buyer.headers).json()["items"]:
        served = world.api.get(item["url"])
        if served.status_code != 200 or (item["sha256"] and hashlib.sha256(served.content).hexdigest() != item["sha256"]):
            problems.append(f"{item['kind']} is listed and is served with {served.status_code}, or not whole")
    left = [path.name for folder in (world.settings.home / "tmp", world.store.root / ".tmp") for path in folder.glob("*")]
    if left:
        problems.append(f"scratch files are left: {left}")
    with world.database.read() as session:
        rows = set(session.scalars(select(Dataset.object_key).where(Dataset.deleted_at.is_(None))))
        subtasks = {f"subtask:{row.id}": f"{row.round_number}/{row.chunk_index}" for row in session.scalars(select(Subtask))}
        escrow = session.execute(
            select(Transfer.reference, Entry.amount)
            .join(Entry, Entry.transfer_id == Transfer.id)
            .join(LedgerAccount, LedgerAccount.id == Entry.account_id)
            .where(LedgerAccount.code == f"escrow:{job_id}", Entry.amount < 0)
        ).all()
    payments: dict[str, list[int]] = {}
    for reference, amount in escrow:
        if not reference.startswith("release:"):
            payments.setdefault(subtasks.get(reference, reference), []).append(-amount)
    stored = {info.key for info in world.store.list("")}
    # An order whose reply was lost may leave a dataset of its own with the buyer: it is listed, so it is no orphan.
    if {key for key in stored if key.startswith("datasets/")} != rows:
        problems.append("datasets in the store and in the database differ")
    kept = Counter(_kind(key) for key in stored if not key.startswith("datasets/"))
    model = world.model(cast.buyer, job_id) if view["status"] == "COMPLETED" else None
    return Report(
        status=view["status"],
        model_sha256=hashlib.sha256(model).hexdigest() if model is not None else None,
        credits={"buyer": world.credits(cast.buyer), "sellers": sum(world.credits(agent.owner) for agent in cast.agents)},
        payments=payments,
        kept=dict(kept),
        problems=problems,
    )


def _kind(key: str) -> str:
    """A key without the parts that are drawn or counted: `jobs/*/updates/*.pth`."""
    return re.sub(r"(?<=/)(\d+-)?[0-9a-f]{8,}|(?<=/)\d+(?=[/-])(-[0-9a-f]{8})?|(?<=/final-)[0-9a-f]{8}", "*", key)


def _age(home: Path) -> None:
    """Let two days pass over scratch files, whose age the file system's clock counts."""
    then = time.time() - 2 * 24 * 3600
    for path in [*(home / "tmp").glob("*"), *(home / "objects" / ".tmp").glob("*")]:
        os.utime(path, (then, then))


# The process that forks them.


def main() -> None:
    """What all lives share is made ready once, here. Between two orders this process has no connection and no second thread."""
    torch.set_num_threads(1)
    passwords.bcrypt_sha256 = bcrypt_sha256.using(rounds=4)  # pyright: ignore[reportPrivateImportUsage]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    # The child that reads a stranger's weights is forked as well: a fork server for each life would import torch each time.
    safe_load._CONTEXT = multiprocessing.get_context("fork")  # pyright: ignore[reportAttributeAccessIssue]
    stage = Stage(sys.argv[1], Path(sys.argv[2]))
    stage.hire()
    print("ready", flush=True)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        if order.is_rehearsal:
            stage.note(order)
            gc.collect()
            gc.freeze()  # what is shared with the children stays shared
            gc.disable()
            print(0, flush=True)
            continue
        assert threading.active_count() == 1, threading.enumerate()
        child = os.fork()
        if child == 0:
            stage.be(order)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
