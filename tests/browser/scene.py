"""What a platform looks like after weeks of use, put into its database in a second. No credits move: the books stay balanced."""

import hashlib
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import gridx.tables  # noqa: F401 - the database knows all tables
from gridx.core.db import Database
from gridx.jobs.gang_models import Checkpoint, Gang, Member
from gridx.jobs.models import Attempt, AttemptLog, Job, JobEvent, Metric, Round, Subtask
from tests.e2e.platform import Platform, User

HARDWARE: dict[str, Any] = {
    "hostname": "lab-pc",
    "os": "Linux 6.1",
    "cores": 8,
    "ram_bytes": 16 * 2**30,
    "disk_free_bytes": 100 * 2**30,
    "python_version": "3.11.7",
    "torch_version": "2.13.0",
    "isolation": "docker",
}
ROWS_A_CHUNK = 64


def register_machine(seller: User, name: str, label: str = "Laboratory") -> None:
    """A machine that is heard of once, and falls silent half a minute later."""
    key = seller.call("POST", "/agent/keys", json={"label": label}).json()["key"]
    answer = User(seller.platform, seller.id, key).call("POST", "/agent/register", json={"agent_id": name, "hardware": HARDWARE})
    assert answer.is_success, answer.text


@dataclass
class Scene:
    """A buyer's jobs on a seller's machines."""

    platform: Platform
    buyer: User
    seller: User
    machines: list[str]
    dataset: int
    database: Database

    @classmethod
    def made(cls, platform: Platform, buyer: User, seller: User, machines: int) -> "Scene":
        names = [f"lab-pc-{number}-of-{seller.id}" for number in range(1, machines + 1)]
        for name in names:
            register_machine(seller, name)
        csv = b"radius,texture,benign\n" + b"".join(b"%d,%d,%d\n" % (n, n * 7 % 31, n % 2) for n in range(1, 641))
        dataset = buyer.call("POST", "/datasets", params={"name": "cells.csv"}, content=csv).json()["id"]
        return cls(platform, buyer, seller, names, dataset, Database(f"sqlite:///{platform.home / 'gridx.db'}"))

    def job(
        self, title: str, status: str = "COMPLETED", *, rounds: int = 1, chunks: int = 1, reason: str | None = None, **more: Any
    ) -> int:
        """A bare job of the buyer: without rounds, files and transfers."""
        now = datetime.now(UTC)
        fields: dict[str, Any] = {
            "owner_id": self.buyer.id,
            "title": title,
            "status": status,
            "reason": reason,
            "dataset_id": self.dataset,
            "script_key": "submissions/none/train.py",
            "script_sha256": hashlib.sha256(b"").hexdigest(),
            "requirements_key": None,
            "arguments": [],
            "hyperparameters": {},
            "chunks": chunks,
            "chunks_per_round": chunks,
            "rounds": rounds,
            "partitioner": "iid",
            "strategy": "fedavg",
            "seed": 7,
            "min_updates": chunks,
            "time_limit_s": 3600,
            "needs": {},
            "needs_ram_bytes": 0,
            "needs_gpus": 0,
            "needs_vram_bytes": 0,
            "units": 1,
            "price": rounds * chunks,
            "total_subtasks": rounds * chunks,
            "current_round": rounds,
            "created_at": now - timedelta(hours=2),
            "finished_at": None if status == "RUNNING" else now - timedelta(hours=1),
        }
        with self.database.write() as session:
            job = Job(**fields | more)
            session.add(job)
            session.flush()
            session.add(JobEvent(job_id=job.id, at=now, what="job", old=None, new=status, text=f"submitted: {title}"))
            return job.id

    def train(self, job_id: int, rounds: int, chunks: int, epochs: int, *, log: str = "", is_running: bool = False) -> list[int]:
        """Rounds with their subtasks, attempts and metrics; the last round is under way where `is_running`. Returns its attempts."""
        begun = datetime.now(UTC) - timedelta(hours=1)
        last: list[int] = []
        with self.database.write() as session:
            for number in range(1, rounds + 1):
                is_open = is_running and number == rounds
                opened = begun + timedelta(minutes=2 * number)
                made = Round(
                    job_id=job_id,
                    number=number,
                    opened_at=opened,
                    closed_at=None if is_open else opened + timedelta(minutes=2),
                    updates_used=None if is_open else chunks,
                    rows_used=None if is_open else chunks * ROWS_A_CHUNK,
                    convergence_delta=None if is_open else 0.1 / number,
                    step_norm=None if is_open else 1.0 / number,
                )
                session.add(made)
                session.flush()
                for chunk in range(chunks):
                    attempt = self._attempt(session, job_id, made.id, number, chunk, opened, epochs, is_open)
                    session.add(AttemptLog(attempt_id=attempt, head=log, total_bytes=len(log.encode())))
                    session.add_all(_metric(job_id, attempt, number, epoch, chunk, opened) for epoch in range(1, epochs + 1))
                    if number == rounds:
                        last.append(attempt)
        return last

    def train_in_step(self, job_id: int, ranks: int, epochs: int) -> None:
        """The second gang of a job of mode `ddp` at work, from a checkpoint of the first; its last rank has fallen silent."""
        now = datetime.now(UTC)
        begun = now - timedelta(minutes=30)
        with self.database.write() as session:
            made = Round(job_id=job_id, number=1, opened_at=begun)
            lost = _gang(job_id, 1, begun, status="BROKEN", fault="lost", reason=f"rank 1 ({self.machines[0]}) was lost", ended_at=begun)
            session.add_all([made, lost])
            session.flush()
            session.add(JobEvent(job_id=job_id, at=begun, what="round", old=None, new="BROKEN", text=f"gang 1 was stopped: {lost.reason}"))
            start = _checkpoint(job_id, lost.id, 3, begun)
            session.add(start)
            session.flush()
            gang = _gang(job_id, 2, begun, status="TRAINING", started_at=begun, checkpoint_id=start.id)
            session.add(gang)
            session.flush()
            session.add_all(_checkpoint(job_id, gang.id, number, now) for number in (1, 2))
            for rank in range(ranks):
                attempt = self._attempt(session, job_id, made.id, 1, rank, begun, epochs, True, kind="rank")
                session.add(AttemptLog(attempt_id=attempt, head=f"rank {rank} joins\n", total_bytes=13))
                session.add_all(_metric(job_id, attempt, 1, epoch, rank, begun) for epoch in range(1, epochs + 1))
                session.add(
                    Member(
                        attempt_id=attempt,
                        gang_id=gang.id,
                        rank=rank,
                        local_rank=0,
                        registered_at=begun,
                        ready_at=begun,
                        has_reached_all=True,
                        step=120 * epochs,
                        samples_per_s=812.34,
                        seen_at=now - timedelta(minutes=5 if rank == ranks - 1 else 0),
                    )
                )

    def _attempt(
        self,
        session: Any,
        job_id: int,
        round_id: int,
        number: int,
        chunk: int,
        at: datetime,
        epochs: int,
        is_open: bool,
        kind: str = "train",
    ) -> int:
        state = "RUNNING" if is_open else "COMPLETED"
        subtask = Subtask(
            job_id=job_id,
            round_id=round_id,
            round_number=number,
            chunk_index=chunk,
            kind=kind,
            status=state,
            rows=ROWS_A_CHUNK,
            attempts_made=1,
        )
        session.add(subtask)
        session.flush()
        loss, accuracy = _curve(number, epochs, chunk)
        attempt = Attempt(
            job_id=job_id,
            buyer_id=self.buyer.id,
            subtask_id=subtask.id,
            agent_id=self.machines[chunk % len(self.machines)],
            seller_id=self.seller.id,
            slot=0 if kind == "train" else 1,
            number=1,
            status="RUNNING" if is_open else "ACCEPTED",
            lease_token=f"{subtask.id}",
            lease_expires_at=at + timedelta(days=1),
            deadline_at=at + timedelta(days=1),
            phase="TRAINING",
            progress=0.5 if is_open else 1.0,
            epoch=epochs,
            loss=loss,
            accuracy=accuracy,
            train_s=100.0,
            upload_key=f"jobs/{job_id}/none",
            started_at=at,
            finished_at=None if is_open else at + timedelta(seconds=100 + chunk),
        )
        session.add(attempt)
        session.flush()
        return attempt.id

    def report(self, job_id: int, attempts: list[int], round_number: int, epoch: int) -> None:
        """One more epoch of each of the attempts, as heartbeats would bring it."""
        now = datetime.now(UTC)
        with self.database.write() as session:
            for chunk, attempt_id in enumerate(attempts):
                attempt = session.get_one(Attempt, attempt_id)
                attempt.epoch, (attempt.loss, attempt.accuracy) = epoch, _curve(round_number, epoch, chunk)
                session.add(_metric(job_id, attempt_id, round_number, epoch, chunk, now))


def _gang(job_id: int, number: int, at: datetime, **more: Any) -> Gang:
    return Gang(job_id=job_id, number=number, place="lab", secret="", created_at=at, register_until=at, ready_until=at, **more)


def _checkpoint(job_id: int, gang_id: int, number: int, at: datetime) -> Checkpoint:
    return Checkpoint(
        job_id=job_id, gang_id=gang_id, number=number, status="SEALED", upload_key="none", upload_sha256="", upload_bytes=1, created_at=at
    )


def _metric(job_id: int, attempt: int, number: int, epoch: int, chunk: int, at: datetime) -> Metric:
    loss, accuracy = _curve(number, epoch, chunk)
    return Metric(attempt_id=attempt, seq=epoch, job_id=job_id, epoch=epoch, loss=loss, accuracy=accuracy, more={}, at=at)


def _curve(number: int, epoch: int, chunk: int) -> tuple[float, float]:
    """Loss and accuracy that fall and rise as training does, a little different on each machine."""
    loss = math.exp(-0.12 * number - 0.02 * epoch) + 0.02 * math.sin(chunk + epoch) + 0.05
    return loss, 1 - loss / 2.2
