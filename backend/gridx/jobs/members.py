"""What a rank's agent tells the orchestrator: it is there, it is ready, how far it is, that it has ended."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.errors import Invalid
from gridx.core.lease import LeaseLost
from gridx.core.settings import Settings
from gridx.core.text import MAX_ID
from gridx.core.wakeup import notify
from gridx.jobs import gangs
from gridx.jobs.gang_models import LIVE, Gang, Member
from gridx.jobs.models import Attempt, Job, Subtask
from gridx.jobs.reports import finite
from gridx.jobs.states import lock_job, record

LOOPBACK = "127.0.0.1"
MASTER_PORT = 29500
_MAX_STEP = 2**53


@dataclass(frozen=True)
class Rank:
    """A rank's place; `refused` says why it has none any more, for the caller to tell once this is committed."""

    rank: int
    world_size: int
    local_rank: int
    master_address: str
    master_port: int
    refused: str | None = None


@dataclass(frozen=True)
class Readiness:
    """Whether all may start. `peers`: (rank, address, port) of those that have to be tried first."""

    can_start: bool
    waiting_for: str
    registered: int
    world_size: int
    master_address: str
    master_port: int
    peers: tuple[tuple[int, str, int], ...] = ()
    stop: str | None = None


def register(
    session: Session,
    agent: AgentActor,
    task_id: int,
    lease_token: str,
    instance: str,
    address: str,
    port: int,
    handshake_port: int,
    now: datetime,
) -> Rank:
    """The rank that an attempt stands for. The same process may ask again; another one under the same lease means that the first is gone.

    Raises:
        LeaseLost: the attempt is not this agent's, or has ended: also a registration that is replayed later.
        Invalid: a name or a port is out of range.
    """
    if not instance or len(instance) > 128 or len(address) > 255 or max(port, handshake_port) > 65535:
        raise Invalid("instance has 1 to 128 characters, address at most 255, and a port is at most 65535")
    agents.touch(session, agent.id, now)
    job, attempt, gang, member = _held(session, agent, task_id, lease_token)
    place = Rank(member.rank, job.chunks, member.local_rank, gang.master_address, gang.master_port)
    if member.instance is not None and member.instance != instance and (gang.status == "TRAINING" or member.ready_at is not None):
        words = "its agent was started anew while it held the rank"
        gangs.end_badly(session, job, session.get_one(Subtask, attempt.subtask_id), attempt, "LOST", "lost", words, now)
        return Rank(*_values(place), refused=words)
    if member.instance != instance:
        member.instance, member.registered_at, member.seen_at = instance, now, now
        member.address, member.port = address or member.address, handshake_port
        if member.rank == 0:
            gang.master_address, gang.master_port = member.address or LOOPBACK, port or MASTER_PORT
        session.flush()
        notify(session)
    return Rank(member.rank, job.chunks, member.local_rank, gang.master_address, gang.master_port)


def get_ready(
    session: Session, agent: AgentActor, task_id: int, lease_token: str, reached: list[int], unreachable: list[int], now: datetime
) -> Readiness:
    """An agent has its files and packages, and asks whether all may start; it also tells which ranks it could and could not reach."""
    job, attempt, gang, member = _held(session, agent, task_id, lease_token)
    if any(rank >= job.chunks for rank in (*reached, *unreachable)):
        raise Invalid(f"a rank is out of range: there are ranks 0 to {job.chunks - 1}")
    member.ready_at, member.seen_at = member.ready_at or now, now
    members = session.execute(
        select(Member, Attempt.agent_id)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Member.gang_id == gang.id)
        .order_by(Member.rank)
        .execution_options(populate_existing=True)
    ).all()
    names = {each.rank: agent_id for each, agent_id in members}
    if gang.status == "FORMING" and unreachable:
        words = "; ".join(
            f"rank {member.rank} ({agent.id}) cannot reach rank {each.rank} ({names[each.rank]}) at {each.address}:{each.port}"
            for each, _ in members
            if each.rank in unreachable
        )
        attempt.status, attempt.fault, attempt.reason, attempt.finished_at = "FAILED", "network", words, now
        gangs.break_gang(session, job, gang, attempt, "network", words, now)
        return Readiness(False, "", len(members), job.chunks, "", 0, stop=words)
    peers = tuple((each.rank, each.address, each.port) for each, _ in members if each.rank != member.rank and each.address and each.port)
    needs_handshake = bool(member.address)
    member.has_reached_all = member.has_reached_all or not needs_handshake or {rank for rank, _, _ in peers} <= set(reached)
    session.flush()
    unready = [f"rank {each.rank} ({names[each.rank]})" for each, _ in members if each.ready_at is None]
    untried = [f"rank {each.rank} ({names[each.rank]})" for each, _ in members if not each.has_reached_all]
    if gang.status == "FORMING" and not unready and not untried:
        gang.status, gang.started_at = "TRAINING", now
        session.flush()
        record(
            session, job.id, now=now, what="round", new="TRAINING", text=f"gang {gang.number}: all {job.chunks} ranks are there and start"
        )
        notify(session)
    waiting = f"{', '.join(unready)} to be ready" if unready else f"{', '.join(untried)} to have reached the others" if untried else ""
    registered = sum(each.registered_at is not None for each, _ in members)
    can_start = gang.status == "TRAINING"
    trying = peers if needs_handshake and not unready and not can_start else ()
    return Readiness(can_start, waiting, registered, job.chunks, gang.master_address, gang.master_port, trying)


def beat(
    session: Session,
    agent: AgentActor,
    task_id: int,
    lease_token: str,
    rank: int,
    *,
    epoch: int,
    step: int,
    loss: float | None,
    samples_per_s: float | None,
    now: datetime,
    settings: Settings,
) -> str | None:
    """Note how far a rank is, and extend its lease. Returns why it has to stop, or None."""
    if task_id > MAX_ID:
        raise Invalid(f"task_id is at most {MAX_ID}")
    agents.touch(session, agent.id, now)
    row = session.execute(
        select(Attempt, Member)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Attempt.subtask_id == task_id, Attempt.agent_id == agent.id, Attempt.lease_token == lease_token)
    ).one_or_none()
    if row is None:
        raise LeaseLost("this lease token holds no rank of yours")
    attempt, member = row
    if member.rank != rank:
        raise Invalid(f"rank {rank} is not this attempt's, which holds rank {member.rank}")
    values = {"epoch": epoch, "loss": finite(loss)} if epoch else {}
    extended = session.execute(
        update(Attempt)
        .where(Attempt.id == attempt.id, Attempt.status == "RUNNING")
        .values(lease_expires_at=now + timedelta(seconds=settings.lease_s), **values)
    ).rowcount  # pyright: ignore[reportAttributeAccessIssue]
    session.execute(
        update(Member)
        .where(Member.attempt_id == attempt.id)
        .values(seen_at=now, step=min(step, _MAX_STEP) or member.step, samples_per_s=finite(samples_per_s) or member.samples_per_s)
    )
    if extended or attempt.status in ("VERIFYING", "ACCEPTED"):
        return None
    return attempt.reason or "this rank was given to another machine"


def leave(
    session: Session,
    agent: AgentActor,
    task_id: int,
    lease_token: str,
    *,
    train_s: float,
    loss: float | None,
    accuracy: float | None,
    now: datetime,
) -> None:
    """A rank has ended well. Rank 0 says so by its upload; from it this call changes nothing. Repeating it is harmless."""
    attempt = _attempt(session, agent, task_id, lease_token)
    if attempt.status in ("VERIFYING", "ACCEPTED"):
        return
    agents.touch(session, agent.id, now)
    job, attempt, gang, member = _held(session, agent, task_id, lease_token)
    if gang.status != "TRAINING":
        raise Invalid("training has not begun yet")
    if member.rank == 0:
        return
    attempt.train_s = finite(train_s)
    attempt.loss = finite(loss) if loss is not None else attempt.loss
    attempt.accuracy = finite(accuracy) if accuracy is not None else attempt.accuracy
    attempt.metrics = {name: value for name, value in (("loss", attempt.loss), ("accuracy", attempt.accuracy)) if value is not None}
    gangs.leave(session, job, session.get_one(Subtask, attempt.subtask_id, populate_existing=True), attempt, now)


def abort(session: Session, agent: AgentActor, task_id: int, lease_token: str, reason: str, now: datetime) -> None:
    """A rank cannot go on, for a reason that is not the script's: its gang is stopped."""
    agents.touch(session, agent.id, now)
    job, attempt, _, _ = _held(session, agent, task_id, lease_token)
    subtask = session.get_one(Subtask, attempt.subtask_id, populate_existing=True)
    gangs.end_badly(session, job, subtask, attempt, "FAILED", "network", reason[:2000] or "it did not say why", now)


def count_unfetched(session: Session) -> int:
    """Reserved ranks whose agents have not asked yet."""
    statement = select(func.count()).select_from(Attempt)
    return session.scalar(statement.where(Attempt.status == "RUNNING", Attempt.slot > 0, Attempt.phase.is_(None))) or 0


def _held(session: Session, agent: AgentActor, task_id: int, lease_token: str) -> tuple[Job, Attempt, Gang, Member]:
    """Everything about a rank's running attempt, its job locked. Raises LeaseLost."""
    attempt = _attempt(session, agent, task_id, lease_token)
    job = lock_job(session, attempt.job_id)
    session.refresh(attempt)
    if attempt.status != "RUNNING":
        raise LeaseLost(f"this attempt is {attempt.status}: {attempt.reason or 'its rank was given to another machine'}")
    gang, member = gangs.gang_of(session, attempt)
    if gang.status not in LIVE:
        raise LeaseLost(f"the gang was stopped: {gang.reason}")
    return job, attempt, gang, member


def _attempt(session: Session, agent: AgentActor, task_id: int, lease_token: str) -> Attempt:
    if task_id > MAX_ID:
        raise Invalid(f"task_id is at most {MAX_ID}")
    attempt = session.scalar(
        select(Attempt)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Attempt.subtask_id == task_id, Attempt.agent_id == agent.id, Attempt.lease_token == lease_token)
    )
    if attempt is None:
        raise LeaseLost("this lease token holds no rank of yours")
    return attempt


def _values(place: Rank) -> tuple[int, int, int, str, int]:
    return place.rank, place.world_size, place.local_rank, place.master_address, place.master_port
