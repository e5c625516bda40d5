"""Rounds that would wait for their slowest machine: late chunks get a second one, and deadlines are kept."""

from datetime import datetime, timedelta
from statistics import median
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gridx.background.work import Work
from gridx.core.errors import NotFound
from gridx.core.wakeup import notify
from gridx.jobs import evaluation, rounds
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import lock_job

LATE_FACTOR: Final = 2.0
"""A chunk is late when it takes this many times the median of those of its round that are done, half of them at least."""
LATE_S: Final = 10.0
"""No chunk is late sooner."""
_MAX_BACKUPS: Final = 2
"""Second attempts at one subtask."""


def look_after_rounds(work: Work) -> int:
    """Meet deadlines that came, and call second machines for what is late. Returns how many rounds were touched."""
    now = work.clock.now()
    with work.database.read() as session:
        current = (Round.number == Job.current_round) & (Round.job_id == Job.id)
        rows = session.execute(
            select(Job.id, Job.backups, Job.evaluations, Round.id, Round.deadline_at, Round.closed_at)
            .join(Round, current)
            .where(Job.status == "RUNNING")
        ).all()
        touched = [
            (job_id, round_id)
            for job_id, backups, evaluations, round_id, deadline_at, closed_at in rows
            if (closed_at is None and deadline_at is not None and deadline_at <= now)
            or (closed_at is None and backups and late_subtasks(session, round_id, now))
            or (closed_at is not None and evaluations > 1 and evaluation.is_half_done(session, round_id))
        ]
    for job_id, round_id in touched:
        with work.database.write() as session:
            _look_after(work, session, job_id, round_id, now)
    return len(touched)


def late_subtasks(session: Session, round_id: int, now: datetime) -> list[int]:
    """Subtasks of a round that take much longer than the others did, and that one machine alone is at."""
    rows = session.execute(
        select(
            Subtask.id,
            Subtask.status,
            func.max(Attempt.started_at),
            func.max(Attempt.finished_at),
            func.max(Attempt.train_s),
            func.count(Attempt.id),
            Subtask.wants_backup,
        )
        .outerjoin(Attempt, (Attempt.subtask_id == Subtask.id) & (Attempt.status.in_(("RUNNING", "VERIFYING", "ACCEPTED"))))
        .where(Subtask.round_id == round_id, Subtask.kind == "train")
        .group_by(Subtask.id, Subtask.status, Subtask.wants_backup)
    ).all()
    # Uploaded is done: in a first round, updates wait until those of the late have been compared with them.
    durations = [
        (finished - started).total_seconds() if finished else trained or 0.0
        for _, status, started, finished, trained, *_ in rows
        if status in ("VERIFYING", "COMPLETED")
    ]
    is_waited_for = any(status == "PENDING" for _, status, *_ in rows)
    if is_waited_for or 2 * len(durations) < len(rows) or not durations:
        return []
    limit = timedelta(seconds=max(LATE_S, LATE_FACTOR * median(durations)))
    late = [
        subtask
        for subtask, status, started, _, _, live, wanted in rows
        if status == "RUNNING" and live == 1 and not wanted and now - started > limit
    ]
    backups = select(Attempt.subtask_id).where(Attempt.subtask_id.in_(late), Attempt.is_backup).group_by(Attempt.subtask_id)
    spent = set(session.scalars(backups.having(func.count() >= _MAX_BACKUPS))) if late else set[int]()
    return [subtask for subtask in late if subtask not in spent]


def _look_after(work: Work, session: Session, job_id: int, round_id: int, now: datetime) -> None:
    try:
        job = lock_job(session, job_id)
    except NotFound:  # its owner deleted it meanwhile
        return
    round_ = session.get_one(Round, round_id)
    if job.status != "RUNNING" or round_.number != job.current_round:
        return
    if round_.closed_at is not None:
        evaluation.stop_waiting(session, job, round_, now, work.settings.offline_after_s)
    elif round_.deadline_at is not None and round_.deadline_at <= now:
        rounds.meet_deadline(session, job, round_, now)
        notify(session)
    elif job.backups and (late := late_subtasks(session, round_id, now)):
        session.execute(update(Subtask).where(Subtask.id.in_(late), Subtask.status == "RUNNING").values(wants_backup=True))
        notify(session)
