"""The legal steps of jobs and subtasks. `move()` is the only way to change a status; it writes the job's timeline."""

from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from gridx.core.errors import GridxError, NotFound
from gridx.core.wakeup import notify
from gridx.jobs.models import Job, JobEvent, Subtask

_log = structlog.get_logger()

JOB_STEPS = {
    "PROCESSING": {"RUNNING", "FAILED", "CANCELLED"},
    "RUNNING": {"AGGREGATING", "FAILED", "CANCELLED"},
    "AGGREGATING": {"RUNNING", "COMPLETED", "FAILED", "CANCELLED"},
}
SUBTASK_STEPS = {
    "PENDING": {"RUNNING", "FAILED", "CANCELLED"},
    "RUNNING": {"VERIFYING", "PENDING", "FAILED", "CANCELLED"},
    "VERIFYING": {"COMPLETED", "PENDING", "FAILED", "CANCELLED"},
}
JOB_ENDS = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
SUBTASK_ENDS = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class IllegalStep(GridxError):
    """Somebody else was faster, or the step makes no sense from where the thing stands."""

    status = 409
    code = "illegal_step"


def lock_job(session: Session, job_id: int) -> Job:
    """The job, locked until the transaction ends. Whatever ends a job, or changes what it still has to pay, takes this lock first.

    Claims do not take it, and with `FOR NO KEY UPDATE` they do not wait for it either.
    """
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update(key_share=True).execution_options(populate_existing=True))
    if job is None:
        raise NotFound("there is no such job")
    return job


def move(session: Session, row: Job | Subtask, to: str, *, now: datetime, text: str, **values: Any) -> None:
    """Take one legal step by a guarded UPDATE, write the event and wake whoever waits.

    Raises:
        IllegalStep: the row is no longer where this session saw it, or no such step exists.
    """
    model = type(row)
    old = row.status
    steps = JOB_STEPS if model is Job else SUBTASK_STEPS
    if to not in steps.get(old, set()):
        raise IllegalStep(f"{_name(row)} is {old} and cannot become {to}")
    if to in (JOB_ENDS if model is Job else SUBTASK_ENDS):
        values.setdefault("finished_at", now)
    statement = update(model).where(model.id == row.id, model.status == old).values(status=to, **values)
    changed = session.execute(statement, execution_options={"synchronize_session": False}).rowcount  # pyright: ignore[reportAttributeAccessIssue]
    if changed != 1:
        raise IllegalStep(f"{_name(row)} is no longer {old}")
    session.refresh(row)
    subtask_id = row.id if isinstance(row, Subtask) else None
    record(
        session,
        row.id if isinstance(row, Job) else row.job_id,
        now=now,
        what=model.__name__.lower(),
        old=old,
        new=to,
        text=text,
        subtask_id=subtask_id,
    )
    notify(session)


def record(
    session: Session, job_id: int, *, now: datetime, what: str, new: str, text: str, old: str | None = None, subtask_id: int | None = None
) -> None:
    """Add a line to the job's timeline. The log gets the ids alone: the text may quote a buyer's script."""
    session.add(JobEvent(job_id=job_id, at=now, what=what, subtask_id=subtask_id, old=old, new=new, text=text))
    _log.info(f"{what} {new.lower()}", job=job_id, subtask=subtask_id, old=old)


def _name(row: Job | Subtask) -> str:
    return f"job {row.id}" if isinstance(row, Job) else f"subtask {row.id}"
