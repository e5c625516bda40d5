"""The agents' side of a job: claims, heartbeats, uploads, completion, failure. Called with the agent that the token named."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select, update
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.lease import LeaseLost, new_lease_token
from gridx.core.settings import Settings
from gridx.core.wakeup import notify
from gridx.datasets.models import Chunk
from gridx.jobs import rounds
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.reports import finite, storable
from gridx.jobs.states import JOB_ENDS, lock_job, move
from gridx_protocol import CompleteRequest, FailRequest, HeartbeatRequest

_log = structlog.get_logger()
_UPLOAD_GRACE_S = 30.0
"""After its deadline an attempt may still report this long: the clock that killed the script is the agent's."""
_MAX_JOBS = 1000
"""Jobs that one request looks at."""
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning))(?::|$)")
_BARS = ("FAILED", "REFUSED")
_MOST_LOSSES = 2
"""Attempts at one subtask that a seller may lose before others go first: whoever takes work and drops it cannot use up its attempts."""
_OTHERS_PATIENCE_S = 120.0
"""How long a subtask waits for another seller than those who failed it: one may be online and never ask."""


@dataclass(frozen=True)
class Claim:
    """What an agent needs in order to run an attempt; the router adds the signed links."""

    attempt: Attempt
    subtask: Subtask
    job: Job
    chunk: Chunk
    global_model_key: str | None
    global_model_sha256: str | None


def claim(session: Session, agent: AgentActor, warm_job_ids: Sequence[int], now: datetime, settings: Settings) -> Claim | None:
    """Give an agent work, or the attempt that it already holds: its reply was lost. None when nothing suits.

    Contested: on PostgreSQL the subtask's row is locked with SKIP LOCKED, on SQLite the session is the only writer. A claim never
    writes to the job's row: who holds that lock may be waiting for this subtask.
    """
    agents.lock(session, agent.id)
    agents.touch(session, agent.id, now)
    held = session.scalar(select(Attempt).where(Attempt.agent_id == agent.id, Attempt.status == "RUNNING"))
    if held is not None:
        held.lease_expires_at = now + timedelta(seconds=settings.lease_s)
        return _describe(session, held)
    for job_id in _jobs_in_order(session, agent, warm_job_ids, now):
        subtask = _pick(session, agent, job_id, now, settings)
        if subtask is not None:
            return _describe(session, _begin(session, agent, subtask, now, settings))
    return None


def has_work(session: Session, now: datetime) -> bool:
    """Whether anything waits at all. A read-only look that keeps idle polls away from the writer's lock."""
    return (
        session.scalar(select(exists().where(Subtask.status == "PENDING", Subtask.job_id == Job.id, Job.status == "RUNNING", _is_due(now))))
        or False
    )


def count_due(session: Session, now: datetime) -> int:
    """Subtasks that an agent could take now."""
    due = select(func.count()).select_from(Subtask).join(Job, Job.id == Subtask.job_id)
    return session.scalar(due.where(Subtask.status == "PENDING", Job.status == "RUNNING", _is_due(now))) or 0


def holds_attempt(session: Session, agent: AgentActor) -> bool:
    return session.scalar(select(exists().where(Attempt.agent_id == agent.id, Attempt.status == "RUNNING"))) or False


def heartbeat(session: Session, agent: AgentActor, beat: HeartbeatRequest, now: datetime, settings: Settings) -> str | None:
    """Note presence and extend the lease. Returns why the attempt is over, or None while the agent may go on."""
    agents.touch(session, agent.id, now)
    if beat.task_id is None or beat.lease_token is None:
        return None
    values = {
        name: value for name, value in (("phase", beat.phase), ("progress", beat.progress), ("epoch", beat.epoch)) if value is not None
    }
    extended = session.execute(
        update(Attempt)
        .where(_is_held(agent, beat.task_id, beat.lease_token), Attempt.status == "RUNNING")
        .values(lease_expires_at=now + timedelta(seconds=settings.lease_s), **values)
    ).rowcount  # pyright: ignore[reportAttributeAccessIssue]
    if extended:
        return None
    attempt = session.scalar(select(Attempt).where(_is_held(agent, beat.task_id, beat.lease_token)))
    if attempt is not None and attempt.status in ("VERIFYING", "ACCEPTED"):
        return None
    return (attempt.reason if attempt is not None else None) or "this work was given to another machine"


def held_attempt(session: Session, agent: AgentActor, task_id: int, lease_token: str) -> Attempt:
    """The attempt that an agent works on. Raises LeaseLost when it no longer does."""
    attempt = session.scalar(select(Attempt).where(_is_held(agent, task_id, lease_token)))
    if attempt is None or attempt.status != "RUNNING":
        raise LeaseLost(_lost(attempt))
    return attempt


def upload_key(session: Session, agent: AgentActor, task_id: int, lease_token: str) -> str | None:
    """Where the upload of a running attempt lies; None when it was already reported. Raises LeaseLost as `complete` does."""
    attempt = session.scalar(select(Attempt).where(_is_held(agent, task_id, lease_token)))
    if attempt is None:
        raise LeaseLost(_lost(None))
    return attempt.upload_key if attempt.status == "RUNNING" else None


def complete(session: Session, agent: AgentActor, request: CompleteRequest, now: datetime) -> str:
    """The upload is done and may be verified. Returns the attempt's status; repeating the call changes nothing.

    Raises:
        LeaseLost: the attempt is not this agent's any more, or its deadline has passed.
    """
    attempt = session.scalar(select(Attempt).where(_is_held(agent, request.task_id, request.lease_token)))
    if attempt is None:
        raise LeaseLost(_lost(None))
    # Before the job's lock, as whoever ends an agent's leases does it: else the two would wait for each other.
    agents.touch(session, agent.id, now)
    job = lock_job(session, attempt.job_id)
    session.refresh(attempt)
    if attempt.status in ("VERIFYING", "ACCEPTED", "REFUSED") and attempt.upload_sha256 == request.sha256:
        return attempt.status
    if attempt.status != "RUNNING" or job.status in JOB_ENDS:
        raise LeaseLost(_lost(attempt))
    if now > attempt.deadline_at + timedelta(seconds=_UPLOAD_GRACE_S):
        raise LeaseLost("the time limit of this attempt has passed")
    subtask = _subtask(session, attempt)
    attempt.status, attempt.upload_sha256, attempt.upload_bytes = "VERIFYING", request.sha256, request.size
    metrics = storable(request.metrics)
    attempt.metrics, attempt.train_s, attempt.phase, attempt.progress = metrics, finite(request.train_s), None, 1.0
    attempt.loss = metrics.get("loss", attempt.loss)
    attempt.accuracy = metrics.get("accuracy", attempt.accuracy)
    session.flush()
    move(session, subtask, "VERIFYING", now=now, text=f"chunk {subtask.chunk_index}: {agent.id} uploaded its update")
    return attempt.status


def fail(session: Session, agent: AgentActor, request: FailRequest, now: datetime, settings: Settings) -> None:
    """The agent says that its attempt failed. Repeating the call changes nothing. Raises LeaseLost as `complete` does."""
    attempt = session.scalar(select(Attempt).where(_is_held(agent, request.task_id, request.lease_token)))
    if attempt is None:
        raise LeaseLost(_lost(None))
    job = lock_job(session, attempt.job_id)
    session.refresh(attempt)
    fault = _fault(request)
    if attempt.fault == fault:
        return
    if attempt.status != "RUNNING":
        raise LeaseLost(_lost(attempt))
    status = "LOST" if request.kind == "shutdown" else "FAILED"
    subtask = _subtask(session, attempt)
    rounds.end_badly(session, job, subtask, attempt, status, fault, request.reason, now, settings.offline_after_s)


def end_leases(session: Session, agent_ids: Sequence[str], reason: str, now: datetime, settings: Settings) -> None:
    """End the running attempts of agents whose key was revoked, or that were removed or banned."""
    running = session.execute(
        select(Attempt.id, Attempt.job_id).where(Attempt.agent_id.in_(agent_ids), Attempt.status == "RUNNING").order_by(Attempt.job_id)
    ).all()
    # All jobs first: ending an attempt moves credits, and who holds another of these jobs may wait for the same wallet.
    for job_id in sorted({job_id for _, job_id in running}):
        lock_job(session, job_id)
    for attempt_id, job_id in running:
        end_lease(session, attempt_id, job_id, "LOST", "revoked", reason, now, settings)


def end_lease(
    session: Session, attempt_id: int, job_id: int, status: str, fault: str, reason: str, now: datetime, settings: Settings
) -> bool:
    """End one attempt if it is still RUNNING. Returns whether it was."""
    job = lock_job(session, job_id)
    attempt = session.get(Attempt, attempt_id, populate_existing=True)
    if attempt is None or attempt.status != "RUNNING":
        return False
    rounds.end_badly(session, job, _subtask(session, attempt), attempt, status, fault, reason, now, settings.offline_after_s)
    return True


def _fault(request: FailRequest) -> str:
    """The failure's stable code. A script's is told apart by its exception: two different ones reproduce nothing."""
    if request.kind != "script":
        return request.kind
    names = [match[1] for line in request.reason.splitlines() if (match := _EXCEPTION.match(line.strip()))]
    return f"script:{names[-1]}"[:64] if names else "script"


def _jobs_in_order(session: Session, agent: AgentActor, warm_job_ids: Sequence[int], now: datetime) -> Sequence[int]:
    """Jobs with work that this agent can do: buyers with the fewest running attempts first, then warm ones, then age."""
    running = (
        select(Attempt.buyer_id, func.count().label("running")).where(Attempt.status == "RUNNING").group_by(Attempt.buyer_id).subquery()
    )
    has_pending = exists().where(Subtask.job_id == Job.id, Subtask.status == "PENDING", _is_due(now))
    return session.scalars(
        select(Job.id)
        .outerjoin(running, running.c.buyer_id == Job.owner_id)
        .where(Job.status == "RUNNING", _suits(agent), has_pending)
        .order_by(func.coalesce(running.c.running, 0), case((Job.id.in_(warm_job_ids), 0), else_=1), Job.id)
        .limit(_MAX_JOBS)
    ).all()


def _pick(session: Session, agent: AgentActor, job_id: int, now: datetime, settings: Settings) -> Subtask | None:
    """Lock one subtask of a job for this agent. Chunks it trained before come first; those its seller failed wait for another seller."""
    known_chunks = (
        select(Subtask.chunk_index)
        .join(Attempt, Attempt.subtask_id == Subtask.id)
        .where(Attempt.agent_id == agent.id, Subtask.job_id == job_id)
    )
    bar = func.coalesce(func.sum(case((Attempt.status.in_(_BARS), _MOST_LOSSES), (Attempt.status == "LOST", 1), else_=0)), 0)
    bar_here = select(bar).where(Attempt.subtask_id == Subtask.id, Attempt.seller_id == agent.owner_id).scalar_subquery()
    pending = (
        select(Subtask)
        .where(Subtask.job_id == job_id, Subtask.status == "PENDING", _is_due(now))
        .order_by(case((Subtask.chunk_index.in_(known_chunks), 0), else_=1), Subtask.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Subtask)
        .execution_options(populate_existing=True)
    )
    subtask = session.scalar(pending.where(bar_here < _MOST_LOSSES))
    if subtask is not None:
        return subtask
    # What is left has failed at this seller's. It may have it again when every seller who could do it has failed it as well, or none came.
    suited = rounds.suited_sellers(session, session.get_one(Job, job_id), now, settings.offline_after_s) | {agent.owner_id}
    barred = (
        select(Attempt.subtask_id, Attempt.seller_id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Subtask.job_id == job_id, Subtask.status == "PENDING", Attempt.seller_id.in_(suited))
        .group_by(Attempt.subtask_id, Attempt.seller_id)
        .having(bar >= _MOST_LOSSES)
        .subquery()
    )
    by_all = select(barred.c.subtask_id).group_by(barred.c.subtask_id).having(func.count() >= len(suited))
    has_waited = Subtask.not_before <= now - timedelta(seconds=_OTHERS_PATIENCE_S)
    return session.scalar(pending.where(or_(Subtask.id.in_(by_all), has_waited)))


def _begin(session: Session, agent: AgentActor, subtask: Subtask, now: datetime, settings: Settings) -> Attempt:
    job = session.get_one(Job, subtask.job_id)
    move(
        session,
        subtask,
        "RUNNING",
        now=now,
        text=f"chunk {subtask.chunk_index} of round {subtask.round_number} went to {agent.id}",
        attempts_made=subtask.attempts_made + 1,
        not_before=None,
    )
    attempt = Attempt(
        job_id=job.id,
        buyer_id=job.owner_id,
        subtask_id=subtask.id,
        agent_id=agent.id,
        seller_id=agent.owner_id,
        number=subtask.attempts_made,
        status="RUNNING",
        lease_token=new_lease_token(),
        lease_expires_at=now + timedelta(seconds=settings.lease_s),
        deadline_at=now + timedelta(seconds=job.time_limit_s),
        upload_key=f"jobs/{job.id}/uploads/{secrets.token_hex(8)}.pth",
        started_at=now,
    )
    session.add(attempt)
    session.flush()
    _log.info("assigned", job=job.id, subtask=subtask.id, attempt=attempt.id, agent=agent.id)
    notify(session)
    return attempt


def _describe(session: Session, attempt: Attempt) -> Claim:
    subtask = _subtask(session, attempt)
    job = session.get_one(Job, attempt.job_id)
    chunk = session.scalars(select(Chunk).where(Chunk.job_id == job.id, Chunk.index == subtask.chunk_index)).one()
    start = session.execute(
        select(Round.global_model_key, Round.global_model_sha256).where(Round.job_id == job.id, Round.number == subtask.round_number - 1)
    ).one_or_none()
    key, sha256 = start if start is not None else (None, None)
    return Claim(attempt, subtask, job, chunk, key, sha256)


def _subtask(session: Session, attempt: Attempt) -> Subtask:
    return session.get_one(Subtask, attempt.subtask_id, populate_existing=True)


def _suits(agent: AgentActor) -> ColumnElement[bool]:
    return and_(Job.needs_ram_bytes <= agent.ram_bytes, Job.needs_gpus <= agent.gpu_count, Job.needs_vram_bytes <= agent.vram_bytes)


def _is_due(now: datetime) -> ColumnElement[bool]:
    return or_(Subtask.not_before.is_(None), Subtask.not_before <= now)


def _is_held(agent: AgentActor, task_id: int, lease_token: str) -> ColumnElement[bool]:
    return and_(Attempt.subtask_id == task_id, Attempt.agent_id == agent.id, Attempt.lease_token == lease_token)


def _lost(attempt: Attempt | None) -> str:
    if attempt is None:
        return "this lease token holds no attempt of yours"
    return f"this attempt is {attempt.status}: {attempt.reason or 'its work was given to another machine'}"
