"""The legal steps of jobs and subtasks. `move()` is the only way to change a status; it writes the job's timeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol

import structlog
from sqlalchemy import Update, and_, bindparam, insert, select, update
from sqlalchemy.orm import Session

from gridx.core.db import table_of
from gridx.core.errors import GridxError, NotFound
from gridx.core.wakeup import notify
from gridx.jobs.models import Job, JobEvent, Subtask

_log = structlog.get_logger()

_EVENT = insert(table_of(JobEvent)).inline()
JOB_STEPS = {
    "PROCESSING": {"RUNNING", "FAILED", "CANCELLED"},
    "RUNNING": {"AGGREGATING", "COMPLETED", "FAILED", "CANCELLED"},
    "AGGREGATING": {"RUNNING", "COMPLETED", "FAILED", "CANCELLED"},
}
SUBTASK_STEPS = {
    "PENDING": {"RUNNING", "FAILED", "CANCELLED"},
    "RUNNING": {"VERIFYING", "PENDING", "FAILED", "CANCELLED"},
    "VERIFYING": {"COMPLETED", "RUNNING", "PENDING", "FAILED", "CANCELLED"},
}
JOB_ENDS = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
SUBTASK_ENDS = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A subtask as a statement saw it, for `move` where no object was loaded."""

    id: int
    job_id: int
    status: str


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


def move(session: Session, row: Job | Subtask | Seen, to: str, *, now: datetime, text: str, **values: Any) -> None:
    """Take one legal step by a guarded UPDATE, write the event and wake whoever waits.

    Raises:
        IllegalStep: the row is no longer where this session saw it, or no such step exists.
    """
    is_job = isinstance(row, Job)
    old = row.status
    if to not in (JOB_STEPS if is_job else SUBTASK_STEPS).get(old, set()):
        raise IllegalStep(f"{_name(row)} is {old} and cannot become {to}")
    if to in (JOB_ENDS if is_job else SUBTASK_ENDS):
        values.setdefault("finished_at", now)
    values["status"] = to
    session.flush()
    statement = _guarded_update(Job if is_job else Subtask, tuple(values))
    changed = session.connection().execute(statement, {"guarded_id": row.id, "guarded_status": old, **values}).rowcount
    if changed != 1:
        raise IllegalStep(f"{_name(row)} is no longer {old}")
    if not isinstance(row, Seen):
        session.refresh(row)
    what, job_id, subtask_id = ("job", row.id, None) if isinstance(row, Job) else ("subtask", row.job_id, row.id)
    record(session, job_id, now=now, what=what, old=old, new=to, text=text, subtask_id=subtask_id)
    notify(session)


def move_all(session: Session, steps: Sequence[tuple[Seen, str]], to: str, *, now: datetime, **values: Any) -> None:
    """Take the same legal step with many subtasks that stand in the same status, each with its text, as `move` does with one.

    Raises:
        IllegalStep: one of the rows is no longer where this session saw it, or no such step exists. None of them counts then.
    """
    [old] = {seen.status for seen, _ in steps}
    if to not in SUBTASK_STEPS.get(old, set()) or to in SUBTASK_ENDS:
        raise IllegalStep(f"subtasks that are {old} cannot become {to} together")
    table = table_of(Subtask)
    guard = and_(table.c.id.in_([seen.id for seen, _ in steps]), table.c.status == old)
    if session.connection().execute(update(table).where(guard).values(status=to, **values)).rowcount != len(steps):
        raise IllegalStep(f"one of {len(steps)} subtasks is no longer {old}")
    events = [
        {"job_id": seen.job_id, "at": now, "what": "subtask", "subtask_id": seen.id, "old": old, "new": to, "text": text}
        for seen, text in steps
    ]
    session.connection().execute(_EVENT, events)
    notify(session)


@cache
def _guarded_update(model: type[Job | Subtask], names: tuple[str, ...]) -> Update:
    table = table_of(model)
    guard = and_(table.c.id == bindparam("guarded_id"), table.c.status == bindparam("guarded_status"))
    return update(table).where(guard).values({name: bindparam(name) for name in names})


def record(
    session: Session, job_id: int, *, now: datetime, what: str, new: str, text: str, old: str | None = None, subtask_id: int | None = None
) -> None:
    """Add a line to the job's timeline. The log gets the ids alone: the text may quote a buyer's script."""
    row = {"job_id": job_id, "at": now, "what": what, "subtask_id": subtask_id, "old": old, "new": new, "text": text}
    session.connection().execute(_EVENT, row)
    _log.info(f"{what} {new.lower()}", job=job_id, subtask=subtask_id, old=old)


class Labelled(Protocol):
    """What is known of a subtask where no object was loaded: a claim."""

    @property
    def kind(self) -> str: ...
    @property
    def chunk_index(self) -> int: ...


def label(subtask: Subtask | Labelled) -> str:
    """What a subtask is called in words for its buyer."""
    return {"evaluate": "the evaluation", "rank": f"rank {subtask.chunk_index}"}.get(subtask.kind, f"chunk {subtask.chunk_index}")


def _name(row: Job | Subtask | Seen) -> str:
    return f"job {row.id}" if isinstance(row, Job) else f"subtask {row.id}"
