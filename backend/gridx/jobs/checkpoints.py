"""Checkpoints that rank 0 uploads while it trains. The server checks each and writes it anew; the next gang starts from the last one."""

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from gridx.agents.service import AgentActor
from gridx.core.errors import Forbidden
from gridx.core.lease import LeaseLost
from gridx.core.wakeup import notify
from gridx.jobs.gang_models import Checkpoint, Gang, Member
from gridx.jobs.models import Attempt
from gridx_protocol import CheckpointRequest


def upload_key(session: Session, agent: AgentActor, task_id: int, lease_token: str, number: int) -> str:
    """Where a checkpoint of a running rank 0 lies. Raises LeaseLost, or Forbidden for another rank."""
    _, attempt, _ = _rank_0(session, agent, task_id, lease_token)
    return attempt.upload_key.replace(".pth", f"-checkpoint-{number}.pth")


def add(session: Session, agent: AgentActor, request: CheckpointRequest, key: str, now: datetime) -> None:
    """Note an uploaded checkpoint. Repeating the call changes nothing."""
    gang, attempt, _ = _rank_0(session, agent, request.task_id, request.lease_token)
    known = session.scalar(select(Checkpoint.id).where(Checkpoint.gang_id == gang.id, Checkpoint.number == request.number))
    if known is not None:
        return
    # Older ones that nobody has looked at yet are not worth it any more.
    session.execute(
        update(Checkpoint)
        .where(Checkpoint.gang_id == gang.id, Checkpoint.status == "UPLOADED", Checkpoint.work_token.is_(None))
        .values(status="REFUSED", reason="a later one came")
    )
    session.add(
        Checkpoint(
            job_id=attempt.job_id,
            gang_id=gang.id,
            number=request.number,
            status="UPLOADED",
            upload_key=key,
            upload_sha256=request.sha256,
            upload_bytes=request.size,
            created_at=now,
        )
    )
    session.flush()
    notify(session)


def needed_keys(session: Session, job_id: int) -> set[str]:
    """Files of a job's checkpoints that must not be swept."""
    rows = session.execute(select(Checkpoint.status, Checkpoint.upload_key, Checkpoint.key).where(Checkpoint.job_id == job_id)).all()
    return {key for status, upload, sealed in rows for key in (upload if status == "UPLOADED" else None, sealed) if key}


def _rank_0(session: Session, agent: AgentActor, task_id: int, lease_token: str) -> tuple[Gang, Attempt, Member]:
    row = session.execute(
        select(Gang, Attempt, Member)
        .join(Member, Member.gang_id == Gang.id)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(
            Attempt.subtask_id == task_id,
            Attempt.agent_id == agent.id,
            Attempt.lease_token == lease_token,
            Attempt.status == "RUNNING",
            Gang.status == "TRAINING",
        )
    ).one_or_none()
    if row is None:
        raise LeaseLost("this lease token holds no rank that is training")
    if row[2].rank != 0:
        raise Forbidden("rank 0 alone saves checkpoints")
    return row[0], row[1], row[2]
