"""Whatever is called, in whatever order, with replies that get lost and servers that die: the money rules hold, what was acknowledged
stays, and every job comes to its end.

A rule is one call of a client or one step of background work. Between rules the invariants are read from the database itself.
"""

import io
import itertools
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from httpx import Response
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from pydantic import SecretStr
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.background.aggregate import aggregate_next
from gridx.background.prepare import prepare_next
from gridx.background.sweep import sweep_storage
from gridx.background.verify import verify_next
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.jobs.models import Attempt, Job, JobEvent, Subtask
from gridx.jobs.states import JOB_ENDS, JOB_STEPS, SUBTASK_ENDS, SUBTASK_STEPS
from gridx.ledger import accounts, transfers
from gridx.ledger import check as ledger_check
from gridx.ledger.models import MINT, Entry, LedgerAccount, Transfer
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock, Person
from tests.backend.direct_client import DirectClient
from tests.backend.jobs.conftest import CSV, HARDWARE, SCRIPT, FakeAgent, World, make_world, pth, weights
from tests.support import databases

_IS_LONG = os.environ.get("GRIDX_HYPOTHESIS") == "long"
SEQUENCES = 1000 if _IS_LONG else 100
STEPS = 15 if _IS_LONG else 12
MOST_JOBS = 2
SEQUENCES_PER_DATABASE = 10
WELCOME = 100
UPLOAD_GRACE = timedelta(seconds=30)
"""After its deadline an attempt may still report this long."""
SELLER_OF = {"a1": "sam", "a2": "sam", "b1": "bea"}
UPDATES: dict[str, bytes] = {
    "good": pth(weights()),
    "other shape": pth({"fc.weight": torch.ones(2, 2), "fc.bias": torch.ones(2)}),
    "not finite": pth(weights(float("nan"))),
    "no weights": b"this is no archive",
}
MANNERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one is enough": {"min_updates": 1},
    "hurried": {"min_updates": 1, "round_deadline_s": 60},
    "strict": {"round_deadline_s": 30},
    "evaluated": {"held_out": 0.2, "early_stopping": {"patience": 1}, "script": f"{SCRIPT}def evaluate(a, b): return {{}}\n"},
}
LIVE: dict[str, list[list[str]]] = {
    "RUNNING": [["RUNNING"], ["RUNNING", "RUNNING"]],
    "VERIFYING": [["VERIFYING"], ["RUNNING", "VERIFYING"], ["VERIFYING", "VERIFYING"]],
    "COMPLETED": [["ACCEPTED"], ["ACCEPTED", "VERIFYING"]],
}
"""Attempts that may be alive at once at a subtask: a late one gets a second machine."""
STEPS_OF_WORK: dict[str, Callable[[Any], object]] = {
    "prepare": prepare_next,
    "verify": verify_next,
    "aggregate": aggregate_next,
    "sweep": sweep_storage,
}
FAILURES = ("script", "output", "memory", "agent", "shutdown")
uploads = st.sampled_from(["good", "good", "good", "good", *UPDATES, "nothing", "other bytes than announced"])
failures = st.sampled_from(FAILURES)
agent_names = st.sampled_from(sorted(SELLER_OF))
works = st.sampled_from(sorted(STEPS_OF_WORK))
manners = st.sampled_from(sorted(MANNERS))
losses = st.sampled_from(["arrives", "arrives", "lost", "lost, and work goes on"])
"""What becomes of the reply to a call. When it is lost, the client calls again."""


class Killed(BaseException):
    """The process ends here."""


class MortalStore(LocalStore):
    """Kills its process at a write, when told to."""

    fuse: int | None = None

    def put_file(self, key: str, path: Path) -> None:
        self._burn()
        super().put_file(key, path)

    def delete(self, key: str) -> None:
        self._burn()
        super().delete(key)

    def _burn(self) -> None:
        if self.fuse is None:
            return
        self.fuse -= 1
        if self.fuse < 0:
            raise Killed


@dataclass
class Machine:
    """A provider's machine: what it would remember over a lost connection."""

    agent: FakeAgent
    seller: Person
    key_id: int
    key: str
    is_enrolled: bool = True


class Ground:
    """A database, a store and people that several sequences share; a new one after some, or after a failure."""

    def __init__(self, kind: databases.Kind, folder: Path) -> None:
        self.url = databases.create(kind, folder)
        self.clock = FakeClock()
        home = folder / Path(self.url.rpartition("/")[2]).stem
        self.store = MortalStore(home / "objects", SECRET, clock=self.clock)
        self._home = home
        self.world = self.open()
        self.buyer = self.world.person("ada@buyers.example.com")
        sellers = {name: self.world.person(f"{name}@sellers.example.com", "seller") for name in sorted(set(SELLER_OF.values()))}
        self.people = [self.buyer, *sellers.values()]
        self.machines = {name: self._enrol(name, sellers[seller]) for name, seller in SELLER_OF.items()}
        self.dataset_id = self.world.api.post("/datasets", content=CSV, headers=self.buyer.headers).json()["id"]
        self.granted = 0

    def open(self) -> World:
        """A server that has just started."""
        options = Settings(home=self._home, jwt_secret_key=SecretStr(SECRET), session_hours=1e5, _env_file=None)  # pyright: ignore[reportCallIssue]
        self.world = make_world(Database(self.url), options, self.clock, self.store, DirectClient)
        self.world.api.__enter__()
        return self.world

    def close(self) -> None:
        self.world.api.__exit__(None, None, None)
        self.world.work.keeper.close()
        self.world.database.dispose()

    def restart(self) -> None:
        self.close()
        self.open()
        for machine in self.machines.values():
            machine.agent.api = self.world.api

    def fill_wallet(self) -> None:
        """Give the buyer back what earlier sequences spent."""
        wallet = accounts.wallet_code(self.buyer.id)
        with self.world.database.write() as session:
            missing = WELCOME - accounts.balance(session, wallet)
            if missing:
                transfers.transfer(
                    session,
                    reference=f"grant:{self.clock.now().timestamp()}",
                    source=MINT,
                    target=wallet,
                    amount=missing,
                    reason="a new sequence",
                    now=self.clock.now(),
                )
                self.granted += missing

    @property
    def minted(self) -> int:
        return WELCOME * len(self.people) + self.granted

    def new_key(self, machine: Machine) -> None:
        answer = self.world.api.post("/agent/keys", json={"label": "k"}, headers=machine.seller.headers)
        machine.key_id, machine.key = answer.json()["id"], answer.json()["key"]

    def register(self, machine: Machine) -> Response:
        body = {"agent_id": machine.agent.name, "hardware": HARDWARE}
        answer = self.world.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {machine.key}"})
        if answer.status_code == 200:
            machine.agent.token, machine.is_enrolled = answer.json()["token"], True
        return answer

    def _enrol(self, name: str, seller: Person) -> Machine:
        machine = Machine(FakeAgent(self.world.api, name, "", seller), seller, 0, "")
        self.new_key(machine)
        assert self.register(machine).status_code == 200
        return machine


class Grounds:
    """Hands out the ground that a sequence plays on."""

    def __init__(self, kind: databases.Kind, folder: Path) -> None:
        self._kind: databases.Kind = kind
        self._folder = folder
        self._ground: Ground | None = None
        self._left = 0
        self.sequences = 0
        self.jobs: dict[str, int] = defaultdict(int)

    def take(self) -> Ground:
        if self._ground is None or self._left == 0:
            self.discard()
            self._ground, self._left = Ground(self._kind, self._folder), SEQUENCES_PER_DATABASE
        self._left -= 1
        return self._ground

    def discard(self) -> None:
        if self._ground is not None:
            self._ground.close()
            databases.drop(self._ground.url)
            self._ground = None


class Market(RuleBasedStateMachine):
    def __init__(self, grounds: Grounds) -> None:
        super().__init__()
        self.grounds = grounds
        self.ground = grounds.take()
        self.keys = itertools.count()
        self.jobs: dict[int, int] = {}
        """The jobs of this sequence that were not deleted, and their prices."""
        self.ended: dict[tuple[str, int], Any] = {}
        """What has come to an end, and how: it never changes again."""

    @property
    def world(self) -> World:
        return self.ground.world

    @initialize(chunks=st.integers(1, 2), rounds=st.integers(1, 2), manner=manners, is_prepared=st.booleans())
    def begin(self, chunks: int, rounds: int, manner: str, is_prepared: bool) -> None:
        self.ground.clock.advance(3600)  # everybody of the last sequence is offline by now
        self.world.expire()
        self.ground.fill_wallet()
        for machine in self.ground.machines.values():
            machine.agent.task = {}
            if not machine.is_enrolled:
                self.ground.new_key(machine)
                assert self.ground.register(machine).status_code == 200
        self._submit(chunks, rounds, 1, manner, "arrives")
        if is_prepared:
            self.world.drain()

    # What a buyer does.

    @precondition(lambda self: len(self.jobs) < MOST_JOBS)
    @rule(chunks=st.integers(1, 2), rounds=st.integers(1, 2), hours=st.sampled_from([1, 1, 1, 2, 168]), manner=manners, reply=losses)
    def submit(self, chunks: int, rounds: int, hours: int, manner: str, reply: str) -> None:
        self._submit(chunks, rounds, hours, manner, reply)

    def _submit(self, chunks: int, rounds: int, hours: int, manner: str, reply: str) -> None:
        buyer, price = self.ground.buyer, hours * (chunks + 2 * (manner == "evaluated")) * rounds
        before = self.world.wallet(buyer)
        body = {"title": "t", "script": SCRIPT, "dataset_id": self.ground.dataset_id, "chunks": chunks, "rounds": rounds, "seed": 1}
        body |= {"time_limit_s": hours * 3600} | MANNERS[manner]
        headers = buyer.headers | {"Idempotency-Key": f"{self.ground.clock.now().timestamp()}-{next(self.keys)}"}
        first = self.world.api.post("/jobs", json=body, headers=headers)
        answer = self._again(reply, lambda: self.world.api.post("/jobs", json=body, headers=headers), first)
        after = self.world.wallet(buyer)
        if price > before["credits"]:
            assert (answer.status_code, answer.json()["code"]) == (402, "insufficient_funds")
            assert after == before
            return
        assert answer.status_code == 201, answer.text
        assert answer.json()["job_id"] == first.json()["job_id"]
        job_id = answer.json()["job_id"]
        assert job_id not in self.jobs, "an id is new"
        self.jobs[job_id] = price
        assert self.world.view(buyer, job_id)["total_subtasks"] == chunks * rounds

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), reply=losses)
    def cancel(self, data: st.DataObject, reply: str) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        status = self.world.view(self.ground.buyer, job_id)["status"]
        answer = self._send(reply, lambda: self.world.api.post(f"/jobs/{job_id}/cancel", headers=self.ground.buyer.headers))
        if status in ("COMPLETED", "FAILED"):
            assert (answer.status_code, answer.json()["code"]) == (409, "job_not_finished")
        else:
            assert answer.status_code == 200, answer.text
            assert self.world.view(self.ground.buyer, job_id)["status"] == "CANCELLED"

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        status, verifying = self._state(job_id)
        answer = self.world.api.delete(f"/jobs/{job_id}", headers=self.ground.buyer.headers)
        if status in JOB_ENDS and not verifying:
            assert answer.status_code == 200, answer.text
            assert self.world.api.get(f"/jobs/{job_id}", headers=self.ground.buyer.headers).status_code == 404
            assert list(self.world.store.list(f"jobs/{job_id}/")) == []
            self._count(status)
            del self.jobs[job_id]
        else:
            assert answer.status_code == 409

    # What a machine does.

    @rule(name=agent_names, reply=losses)
    def claim(self, name: str, reply: str) -> None:
        self._claim(name, reply)

    def _claim(self, name: str, reply: str) -> None:
        machine = self.ground.machines[name]
        running = self._running(name)
        answer = self._send(reply, lambda: machine.agent.call("request_task"), same_body=("task_id", "lease_token"))
        if not machine.is_enrolled:
            assert answer.status_code == 401
            return
        assert answer.status_code == 200, answer.text
        task = answer.json()
        if running is not None:
            assert task["lease_token"] == running.lease_token, "a machine that holds an attempt gets that one again"
        if task["task_id"] is None:
            return
        machine.agent.task = task
        held = self._running(name)
        assert held is not None
        assert (held.subtask_id, held.lease_token) == (task["task_id"], task["lease_token"])
        assert held.lease_expires_at == self.ground.clock.now() + self._lease()
        assert self.world.api.get(task["chunk_data_url"]).status_code == 200
        if task["global_model_url"] is not None:
            assert self.world.api.get(task["global_model_url"]).status_code == 200

    @precondition(lambda self: self._with_task())
    @rule(data=st.data(), reply=losses)
    def heartbeat(self, data: st.DataObject, reply: str) -> None:
        machine = self._draw_machine(data)
        answer = self._send(reply, lambda: machine.agent.about("heartbeat", phase="TRAINING", progress=0.5))
        if not machine.is_enrolled:
            assert answer.status_code == 401
            return
        assert answer.status_code == 200, answer.text
        attempt = self._attempt(machine)
        is_wanted = attempt is not None and attempt.status in ("RUNNING", "VERIFYING", "ACCEPTED")
        assert answer.json()["cancel"] is not is_wanted
        if attempt is not None and attempt.status == "RUNNING":
            assert attempt.lease_expires_at == self.ground.clock.now() + self._lease()

    @precondition(lambda self: self._with_task())
    @rule(data=st.data(), what=uploads, reply=losses)
    def complete(self, data: st.DataObject, what: str, reply: str) -> None:
        self._complete(self._draw_machine(data), what, reply)

    def _complete(self, machine: Machine, what: str, reply: str) -> None:
        before = self._attempt(machine)
        content = UPDATES.get(what, UPDATES["good"])
        is_evaluation = machine.agent.task["kind"] == "evaluate"
        if what != "nothing" and not is_evaluation and machine.is_enrolled and before is not None and before.status == "RUNNING":
            link = machine.agent.about("upload_url", size=len(content))
            assert link.status_code == 200, link.text
            sent = content if what != "other bytes than announced" else bytes(len(content))
            assert self.world.api.put(link.json()["url"], content=sent, headers=link.json()["headers"]).status_code == 204
        numbers = {"loss": 0.5} if not is_evaluation or what == "good" else {}
        answer = self._send(reply, lambda: machine.agent.complete(content, **numbers))
        if not machine.is_enrolled:
            assert answer.status_code == 401
            return
        if answer.status_code != 200:
            assert answer.json()["code"] in ("lease_lost", "nothing_uploaded")
            if before is not None and before.status == "RUNNING":
                assert what == "nothing" or self.ground.clock.now() > before.deadline_at + UPLOAD_GRACE, answer.text
            return
        if before is not None and before.status == "RUNNING":
            assert self.ground.clock.now() <= before.deadline_at + UPLOAD_GRACE, "a time limit is never extended, not even by downtime"
        attempt = self._attempt(machine)
        assert attempt is not None
        assert attempt.status in ("VERIFYING", "ACCEPTED", "REFUSED")
        assert attempt.upload_sha256 is not None

    @precondition(lambda self: self._with_task())
    @rule(data=st.data(), kind=failures, reply=losses)
    def fail(self, data: st.DataObject, kind: str, reply: str) -> None:
        self._fail(self._draw_machine(data), kind, reply)

    @rule(name=agent_names, what=st.one_of(uploads, failures), reply=losses)
    def train(self, name: str, what: str, reply: str) -> None:
        """From the claim to the report, and what the server makes of it."""
        self._claim(name, reply)
        machine = self.ground.machines[name]
        if machine.agent.task.get("task_id"):
            self._fail(machine, what, reply) if what in FAILURES else self._complete(machine, what, reply)
            self.world.drain()

    @rule(kind=st.sampled_from(["script", "memory"]), names=st.sampled_from([("a1", "b1"), ("b1", "a2"), ("a1", "a2")]))
    def fail_on_two_machines(self, kind: str, names: tuple[str, str]) -> None:
        for name in names:
            self._claim(name, "arrives")
            machine = self.ground.machines[name]
            if machine.agent.task.get("task_id"):
                self._fail(machine, kind, "arrives")

    def _fail(self, machine: Machine, kind: str, reply: str) -> None:
        before = self._attempt(machine)
        answer = self._send(reply, lambda: machine.agent.fail(kind, f"{kind} trouble"))
        if not machine.is_enrolled:
            assert answer.status_code == 401
            return
        attempt = self._attempt(machine)
        if before is not None and before.status == "RUNNING":
            assert answer.status_code == 200, answer.text
            assert attempt is not None
            assert attempt.status == ("LOST" if kind == "shutdown" else "FAILED")
        else:
            assert answer.status_code in (200, 409), answer.text

    @rule(name=agent_names, reply=losses)
    def revoke(self, name: str, reply: str) -> None:
        machine = self.ground.machines[name]
        path = f"/agent/keys/{machine.key_id}"
        answer = self._send(reply, lambda: self.world.api.delete(path, headers=machine.seller.headers))
        assert answer.status_code == 200, answer.text
        machine.is_enrolled = False
        assert self._running(name) is None
        assert machine.agent.call("heartbeat").status_code == 401
        assert self.ground.register(machine).status_code == 401

    @rule(name=agent_names, reply=losses)
    def come_back(self, name: str, reply: str) -> None:
        """The worker is started again, and remembers no work."""
        machine = self.ground.machines[name]
        old = machine.agent.token
        if not machine.is_enrolled:
            self.ground.new_key(machine)
        running = self._running(name)
        answer = self._send(reply, lambda: self.ground.register(machine))
        assert answer.status_code == 200, answer.text
        machine.agent.task = {}
        new, machine.agent.token = machine.agent.token, old
        assert machine.agent.call("heartbeat").status_code == 401, "the former token has ended"
        machine.agent.token = new
        still = self._running(name)
        assert (still.id if still else None) == (running.id if running else None)

    # What the server does, and what happens to it.

    @rule(kind=works)
    def work(self, kind: str) -> None:
        STEPS_OF_WORK[kind](self.world.work)

    @rule()
    def work_off(self) -> None:
        self.world.drain()

    @rule(tens=st.sampled_from([1, 3, 7]))
    def time_passes(self, tens: int) -> None:
        """Leases are looked after while the clock goes on."""
        for _ in range(tens):
            self.ground.clock.advance(10)
            self.world.expire()
            self.world.look_after_rounds()

    @rule(seconds=st.sampled_from([1, 31, 61, 3700]))
    def server_is_away(self, seconds: float) -> None:
        self.ground.clock.advance(seconds)

    @rule()
    def look_after_leases(self) -> None:
        self.world.expire()

    @rule()
    def look_after_rounds(self) -> None:
        self.world.look_after_rounds()

    @rule(kind=works, write=st.integers(0, 2))
    def die_and_restart(self, kind: str, write: int) -> None:
        """The server dies at a write to the store in the middle of its work, if the work comes that far."""
        self.ground.store.fuse = write
        try:
            STEPS_OF_WORK[kind](self.world.work)
        except Killed:
            pass
        finally:
            self.ground.store.fuse = None
        self.ground.restart()

    # What must hold after each of them.

    @invariant()
    def holds(self) -> None:
        with self.world.database.read() as session:
            assert ledger_check.check(session) == []
            self._check_money(session)
            jobs = session.scalars(select(Job).where(Job.id.in_(self.jobs))).all()
            assert {job.id for job in jobs} == set(self.jobs), "an acknowledged job is there"
            for job in jobs:
                self._check_job(session, job)

    def _check_money(self, session: Session) -> None:
        balances = dict(session.execute(select(LedgerAccount.code, LedgerAccount.balance)).all())
        places = {code: amount for code, amount in balances.items() if code != MINT}
        assert min(places.values()) >= 0
        assert sum(places.values()) == self.ground.minted == -balances[MINT]

    def _check_job(self, session: Session, job: Job) -> None:
        subtasks = session.scalars(select(Subtask).where(Subtask.job_id == job.id)).all()
        attempts = session.scalars(select(Attempt).where(Attempt.job_id == job.id).order_by(Attempt.id)).all()
        self._check_steps(session, job, subtasks)
        of_subtask: dict[int, list[Attempt]] = defaultdict(list)
        for attempt in attempts:
            of_subtask[attempt.subtask_id].append(attempt)
        for subtask in subtasks:
            tries = of_subtask[subtask.id]
            live = sorted(attempt.status for attempt in tries if attempt.status in ("RUNNING", "VERIFYING", "ACCEPTED"))
            assert live in LIVE.get(subtask.status, [[]]), f"{subtask.status}: {live}"
            paid = [attempt.paid for attempt in tries if attempt.status == "ACCEPTED"]
            assert paid == ([job.units] if subtask.status == "COMPLETED" else [])
        working = [attempt.agent_id for attempt in attempts if attempt.status == "RUNNING"]
        assert len(working) == len(set(working)), "one live attempt per agent"
        self._check_escrow(session, job, subtasks, attempts)
        finals = [("job", job.id, job.status) for _ in "x" if job.status in JOB_ENDS]
        finals += [("subtask", row.id, row.status) for row in subtasks if row.status in SUBTASK_ENDS]
        finals += [("attempt", row.id, (row.status, row.paid)) for row in attempts if row.status not in ("RUNNING", "VERIFYING")]
        for kind, row_id, how in finals:
            known = self.ended.setdefault((kind, row_id), how)
            # Showing that a script fails, or makes what is refused, is paid when another seller has shown it too.
            is_reproduced = kind == "attempt" and known in (("FAILED", 0), ("REFUSED", 0)) and how == (known[0], job.units)
            assert known == how or is_reproduced, f"{kind} {row_id}: {known}, {how}"
            self.ended[kind, row_id] = how
        seen = {(kind, row_id) for kind, row_id, _ in finals}
        assert {key for key in self.ended if key[0] == "job" and key[1] == job.id} <= seen

    def _check_escrow(self, session: Session, job: Job, subtasks: Any, attempts: Any) -> None:
        escrow = accounts.balance(session, accounts.escrow_code(job.id))
        moved = session.execute(
            select(Transfer.reference, Entry.amount)
            .join(Entry, Entry.transfer_id == Transfer.id)
            .join(LedgerAccount, LedgerAccount.id == Entry.account_id)
            .where(LedgerAccount.code == accounts.escrow_code(job.id))
        ).all()
        paid = {reference: -amount for reference, amount in moved if amount < 0 and not reference.startswith("release:")}
        assert [amount for _, amount in moved if amount > 0] == [job.price], "held once"
        assert all(paid.get(f"subtask:{row.id}") == (job.units if row.status == "COMPLETED" else None) for row in subtasks)
        assert sum(paid.values()) == sum(row.paid for row in attempts)
        if job.status in JOB_ENDS:
            verifying = sum(row.status == "VERIFYING" for row in subtasks)
            assert escrow == verifying * job.units, "an ended job keeps what it may still have to pay, and no more"
            assert {row.status for row in subtasks} <= {*SUBTASK_ENDS, "VERIFYING"}
        else:
            assert escrow == job.price - sum(paid.values())

    def _check_steps(self, session: Session, job: Job, subtasks: Any) -> None:
        """The timeline is one chain of legal steps up to the present status."""
        events = session.scalars(select(JobEvent).where(JobEvent.job_id == job.id).order_by(JobEvent.id)).all()
        at = "PROCESSING"
        for event in events:
            if event.what == "job" and event.old is not None:
                assert event.old == at
                assert event.new in JOB_STEPS[at]
                at = event.new
        assert job.status == at
        for subtask in subtasks:
            at = "PENDING"
            for event in events:
                if event.what == "subtask" and event.subtask_id == subtask.id:
                    assert event.old == at
                    assert event.new in SUBTASK_STEPS[at]
                    at = event.new
            assert subtask.status == at

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:  # the sequence failed; whatever it left is of no use to the next one
            self.grounds.discard()
            return
        self.grounds.sequences += 1
        try:
            self._drive_to_end()
        except BaseException:
            self.grounds.discard()
            raise

    def _drive_to_end(self) -> None:
        for machine in self.ground.machines.values():
            if not machine.is_enrolled:
                self.ground.new_key(machine)
                self.ground.register(machine)
        for _ in range(60):
            self.world.drain()
            if all(status in JOB_ENDS and not verifying for status, verifying in map(self._state, self.jobs)):
                break
            for machine in self.ground.machines.values():
                if machine.agent.request()["task_id"] is not None:
                    if machine.agent.task["kind"] != "evaluate":
                        machine.agent.upload(UPDATES["good"])
                    machine.agent.complete(UPDATES["good"], loss=0.5)  # refused past the deadline; that attempt ends by the clock
            self.ground.clock.advance(10)
            self.world.expire()
            self.world.look_after_rounds()
        self.holds()
        for job_id in self.jobs:
            view = self.world.view(self.ground.buyer, job_id)
            assert view["status"] in JOB_ENDS, f"job {job_id} hangs: {view['waiting_for']}"
            self._count(view["status"])
            if view["status"] == "COMPLETED":
                model = torch.load(io.BytesIO(self.world.model(self.ground.buyer, job_id)), weights_only=True)
                assert all(bool(torch.isfinite(tensor).all()) for tensor in model.values())
            sweep_storage(self.world.work)
            assert not [info.key for info in self.world.store.list(f"jobs/{job_id}/uploads/")]
            for item in self.world.api.get(f"/jobs/{job_id}/artifacts", headers=self.ground.buyer.headers).json()["items"]:
                assert self.world.api.get(item["url"]).status_code == 200, f"{item['kind']} is listed and can be had"
        assert self.world.wallet(self.ground.buyer)["held"] == 0

    # Looking, and calling.

    def _send(self, reply: str, call: Callable[[], Response], same_body: tuple[str, ...] = ()) -> Response:
        first = call()
        answer = self._again(reply, call, first)
        if first.status_code == 200:
            for name in same_body:
                assert answer.json()[name] == first.json()[name] or first.json()[name] is None
        return answer

    def _again(self, reply: str, call: Callable[[], Response], first: Response) -> Response:
        if reply == "arrives":
            return first
        if reply != "lost":
            verify_next(self.world.work)
        second = call()
        assert second.status_code == first.status_code, f"first {first.text}, then {second.text}"
        return second

    def _with_task(self) -> list[str]:
        return sorted(name for name, machine in self.ground.machines.items() if machine.agent.task.get("task_id"))

    def _draw_machine(self, data: st.DataObject) -> Machine:
        return self.ground.machines[data.draw(st.sampled_from(self._with_task()))]

    def _lease(self) -> timedelta:
        return timedelta(seconds=self.world.settings.lease_s)

    def _running(self, name: str) -> Attempt | None:
        with self.world.database.read() as session:
            return session.scalar(select(Attempt).where(Attempt.agent_id == name, Attempt.status == "RUNNING"))

    def _attempt(self, machine: Machine) -> Attempt | None:
        """The attempt that the machine believes to hold; None when its job was deleted."""
        with self.world.database.read() as session:
            return session.scalar(select(Attempt).where(Attempt.lease_token == machine.agent.task["lease_token"]))

    def _state(self, job_id: int) -> tuple[str, int]:
        with self.world.database.read() as session:
            verifying = select(func.count()).select_from(Attempt).where(Attempt.job_id == job_id, Attempt.status == "VERIFYING")
            return session.get_one(Job, job_id).status, session.scalar(verifying) or 0

    def _count(self, status: str) -> None:
        self.grounds.jobs[status] += 1


@pytest.mark.slow
@pytest.mark.timeout(5400 if _IS_LONG else 1500)
class MarketRules:
    """The proof, for the test module of each database to inherit: pytest-xdist runs a file on one core."""

    kind: databases.Kind

    @pytest.fixture
    def grounds(self, tmp_path: Path) -> Iterator[Grounds]:
        made = Grounds(self.kind, tmp_path)
        yield made
        made.discard()

    def test_no_sequence_breaks_the_rules(self, grounds: Grounds, record_property: Callable[[str, object], None]) -> None:
        run_state_machine_as_test(
            cast("type[Market]", lambda: Market(grounds)),  # any callable that makes one will do
            settings=settings(
                max_examples=SEQUENCES,
                stateful_step_count=STEPS,
                deadline=None,
                phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if _IS_LONG else [])],
                suppress_health_check=list(cast("Iterable[HealthCheck]", HealthCheck)),
            ),
        )
        record_property("counted", f"{grounds.sequences} sequences; jobs that ended: {dict(sorted(grounds.jobs.items()))}")
        assert grounds.sequences >= SEQUENCES
        assert set(grounds.jobs) == JOB_ENDS, "each kind of end was seen"
