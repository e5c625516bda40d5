"""The agents' side of a job: heartbeats, uploads, completion, failure. Called with the agent that the token named."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import ColumnElement, and_, exists, select, update
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.lease import LeaseLost
from gridx.core.settings import Settings
from gridx.jobs import attempts, gangs
from gridx.jobs.claims import is_open
from gridx.jobs.models import Attempt, Job, Subtask
from gridx.jobs.reports import finite, storable
from gridx.jobs.states import JOB_ENDS, label, lock_job, move
from gridx_protocol import CompleteRequest, FailRequest, HeartbeatRequest

_log = structlog.get_logger()
_UPLOAD_GRACE_S = 30.0
"""After its deadline an attempt may still report this long: the clock that killed the script is the agent's."""
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning))(?::|$)")


def has_work(session: Session, now: datetime) -> bool:
    """Whether anything waits at all. A read-only look that keeps idle polls away from the writer's lock."""
    return session.scalar(select(exists().where(Subtask.job_id == Job.id, Job.status == "RUNNING", is_open(now)))) or False


def ended_jobs(session: Session, job_ids: Sequence[int]) -> list[int]:
    """Which of these jobs are over, or were never there."""
    if not job_ids:
        return []
    going = set(session.scalars(select(Job.id).where(Job.id.in_(job_ids), Job.status.not_in(JOB_ENDS))))
    return sorted(set(job_ids) - going)


def heartbeat(session: Session, agent: AgentActor, beat: HeartbeatRequest, now: datetime, settings: Settings) -> str | None:
    """Extend the lease. Returns why the attempt is over, or None while the agent may go on."""
    if beat.task_id is None or beat.lease_token is None:
        return None
    agents.touch(session, agent.id, now)
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
    """Where the upload of a running attempt lies; None when there is none to come (any more). Raises LeaseLost as `complete` does."""
    attempt = session.scalar(select(Attempt).where(_is_held(agent, task_id, lease_token)))
    if attempt is None:
        raise LeaseLost(_lost(None))
    return attempt.upload_key if attempt.status == "RUNNING" and _subtask(session, attempt).kind != "evaluate" else None


def complete(session: Session, agent: AgentActor, request: CompleteRequest, now: datetime, settings: Settings) -> str:
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
    if subtask.status == "RUNNING":  # else another attempt's upload is being verified already
        text = f"{label(subtask)}: {agent.id} {'sent its numbers' if subtask.kind == 'evaluate' else 'uploaded its update'}"
        move(session, subtask, "VERIFYING", now=now, text=text)
    if subtask.kind == "evaluate":
        _take_numbers(session, job, subtask, attempt, now, settings)
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
    if gangs.note_late_failure(session, job, attempt, fault, request.reason, now):
        return
    if attempt.status != "RUNNING":
        raise LeaseLost(_lost(attempt))
    status = "LOST" if request.kind == "shutdown" else "FAILED"
    subtask = _subtask(session, attempt)
    attempts.end_badly(session, job, subtask, attempt, status, fault, request.reason, now, settings.offline_after_s)


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
    attempts.end_badly(session, job, _subtask(session, attempt), attempt, status, fault, reason, now, settings.offline_after_s)
    return True


def _take_numbers(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime, settings: Settings) -> None:
    """An evaluation has no file to verify: its numbers count, or it has none."""
    if attempt.metrics:
        attempts.accept(session, job, subtask, attempt, now)
        return
    reason = "evaluate() returned no finite number; return a dict such as {'loss': 0.3, 'accuracy': 0.9}"
    attempts.end_badly(session, job, subtask, attempt, "REFUSED", "numbers", reason, now, settings.offline_after_s)


def _fault(request: FailRequest) -> str:
    """The failure's stable code. A script's is told apart by its exception: two different ones reproduce nothing."""
    if request.kind != "script":
        return request.kind
    names = [match[1] for line in request.reason.splitlines() if (match := _EXCEPTION.match(line.strip()))]
    return f"script:{names[-1]}"[:64] if names else "script"


def _subtask(session: Session, attempt: Attempt) -> Subtask:
    return session.get_one(Subtask, attempt.subtask_id, populate_existing=True)


def _is_held(agent: AgentActor, task_id: int, lease_token: str) -> ColumnElement[bool]:
    return and_(Attempt.subtask_id == task_id, Attempt.agent_id == agent.id, Attempt.lease_token == lease_token)


def _lost(attempt: Attempt | None) -> str:
    if attempt is None:
        return "this lease token holds no attempt of yours"
    return f"this attempt is {attempt.status}: {attempt.reason or 'its work was given to another machine'}"
