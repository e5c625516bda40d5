"""The standalone orchestrator's memory: one group of a fixed size, in one process, without accounts. Pure: the time is passed in.

Ranks are given in the order of arrival. A worker that falls silent before training starts loses its rank to the next one who comes; once
training has begun, one that falls silent ends it for all, because the others would wait for it for ever.
"""

import secrets
from dataclasses import dataclass
from typing import Literal

from gridx.core.errors import GridxError, Invalid, NotAuthenticated
from gridx.orchestrator.view import GangView, RankLine

Status = Literal["WAITING", "TRAINING", "DONE", "ABORTED"]
MAX_NAME = 128


class NoRankLeft(GridxError):
    status = 429
    code = "no_rank_left"


class NameTaken(GridxError):
    status = 409
    code = "name_taken"


class Over(GridxError):
    status = 409
    code = "over"


@dataclass
class Member:
    """A worker that holds a rank. `session` is what it proves itself with; `instance` tells its process from another of its name."""

    rank: int
    worker_id: str
    instance: str
    session: str
    address: str
    port: int
    seen_at: float
    has_left: bool = False
    epoch: int | None = None
    step: int | None = None
    loss: float | None = None
    samples_per_s: float | None = None


class Room:
    """`master` is where rank 0 listens unless it names another place. Seconds are those of one monotonic clock."""

    def __init__(self, world_size: int, *, master: tuple[str, int] = ("127.0.0.1", 29500), silent_after_s: float = 15.0) -> None:
        self.world_size = world_size
        self.status: Status = "WAITING"
        self.reason = ""
        self._master = master
        self._silent_after_s = silent_after_s
        self._members: dict[int, Member] = {}
        self._now = 0.0

    @property
    def is_over(self) -> bool:
        return self.status in ("DONE", "ABORTED")

    @property
    def master(self) -> tuple[str, int]:
        """Where rank 0 listens."""
        first = self._members.get(0)
        return (first.address or self._master[0], first.port or self._master[1]) if first else self._master

    def register(self, worker_id: str, instance: str, address: str, port: int, now: float) -> Member:
        """A rank for a worker; the same one again when the call is repeated by the same process.

        Raises:
            NameTaken: the name belongs to another process: a replay, or a worker that was started twice.
            NoRankLeft: all ranks are taken.
            Over: the group has ended.
        """
        self.look(now)
        if len(worker_id) > MAX_NAME or len(instance) > MAX_NAME or len(address) > MAX_NAME or port > 65535:
            raise Invalid("worker_id, instance and address have at most 128 characters, and a port is at most 65535")
        known = next((each for each in self._members.values() if worker_id and each.worker_id == worker_id), None)
        if known is not None:
            if not instance or known.instance != instance:
                raise NameTaken(f"{worker_id!r} has registered already, as rank {known.rank}; give this worker another name")
            known.seen_at = now
            return known
        if self.is_over:
            raise Over(self._over())
        free = next((rank for rank in range(self.world_size) if rank not in self._members), None)
        if free is None:
            raise NoRankLeft(f"all {self.world_size} ranks are taken")
        member = Member(free, worker_id or f"worker-{free}", instance, secrets.token_urlsafe(24), address, port, now)
        self._members[free] = member
        return member

    def heartbeat(
        self, rank: int, session: str, now: float, *, epoch: int, step: int, loss: float | None, samples_per_s: float | None
    ) -> str | None:
        """Note a sign of life. Returns why everybody has to stop, None while training may go on."""
        member = self._member(rank, session, now)
        member.epoch, member.step = epoch, step
        member.loss = loss if loss is not None else member.loss
        member.samples_per_s = samples_per_s if samples_per_s is not None else member.samples_per_s
        return self.reason if self.status == "ABORTED" else None

    def can_start(self, rank: int, session: str, now: float) -> bool:
        """Whether all ranks are there. Once true it stays so."""
        self._member(rank, session, now)
        if self.status == "WAITING" and len(self._members) == self.world_size:
            self.status = "TRAINING"
        return self.status == "TRAINING"

    def leave(self, rank: int, session: str, now: float) -> None:
        """A worker's training has ended well. Before the start it only gives its rank back."""
        member = self._member(rank, session, now)
        if self.status == "WAITING":
            del self._members[rank]
            return
        member.has_left = True
        if self.status == "TRAINING" and all(each.has_left for each in self._members.values()):
            self.status = "DONE"

    def abort(self, rank: int, session: str, reason: str, now: float) -> None:
        """A worker cannot go on."""
        member = self._member(rank, session, now)
        if not self.is_over:
            self._end(f"rank {rank} ({member.worker_id}) gave up: {reason[:500] or 'it did not say why'}")

    def look(self, now: float) -> None:
        """Who has fallen silent?"""
        self._now = now
        silent = [each for each in self._members.values() if not each.has_left and now - each.seen_at > self._silent_after_s]
        for member in silent:
            if self.status == "WAITING":
                del self._members[member.rank]
            elif self.status == "TRAINING":
                self._end(f"rank {member.rank} ({member.worker_id}) was not heard of for {self._silent_after_s:g} s")

    def waiting_for(self) -> str:
        if self.is_over:
            return self._over()
        missing = self.world_size - len(self._members)
        return f"{missing} of {self.world_size} ranks have not come yet" if missing else ""

    @property
    def registered(self) -> int:
        return len(self._members)

    def views(self) -> list[GangView]:
        lines = tuple(
            RankLine(
                rank=each.rank,
                worker=each.worker_id,
                state="LEFT" if each.has_left else ("TRAINING" if self.status == "TRAINING" else "READY"),
                epoch=each.epoch,
                step=each.step,
                loss=each.loss,
                samples_per_s=each.samples_per_s,
                silent_s=None if each.has_left else max(self._now - each.seen_at, 0.0),
            )
            for _, each in sorted(self._members.items())
        )
        return [GangView("standalone", self.status, self.world_size, self.reason or self.waiting_for(), lines)]

    def _member(self, rank: int, session: str, now: float) -> Member:
        self.look(now)
        if not 0 <= rank < self.world_size:
            raise Invalid(f"rank {rank} is out of range: there are ranks 0 to {self.world_size - 1}")
        member = self._members.get(rank)
        if member is None or not secrets.compare_digest(member.session.encode(), session.encode()):
            raise NotAuthenticated(f"this session does not hold rank {rank}; register first")
        member.seen_at = now
        return member

    def _end(self, reason: str) -> None:
        self.status, self.reason = "ABORTED", reason

    def _over(self) -> str:
        return "training has ended" if self.status == "DONE" else f"training was stopped: {self.reason}"
