"""Closing a round by hand: the administrator's way out when the last updates will not come."""

import time

from sqlalchemy import exists, select

from gridx.background.aggregate import aggregate_next
from gridx.background.executor import make_executor
from gridx.background.verify import verify_next
from gridx.background.work import Work
from gridx.core import lease
from gridx.core.clock import SystemClock
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.jobs import rounds
from gridx.jobs.models import Attempt, Job
from gridx.jobs.states import JOB_ENDS, lock_job
from gridx.storage.select import make_store

_LOOK_AGAIN_S = 0.2


def force_aggregate(settings: Settings, job_id: int) -> str:
    """Close the job's current round with what was accepted so far and merge it. Returns what happened, in words."""
    database = Database(settings.sqlalchemy_url)
    executor = make_executor(settings)
    work = Work(settings, database, make_store(settings), SystemClock(), executor)
    try:
        with database.write() as session:
            job = lock_job(session, job_id)
            if job.status in JOB_ENDS:
                return f"job {job_id} is already {job.status}"
            if job.status == "PROCESSING":
                return f"job {job_id} is still being prepared; nothing can be merged yet"
            if job.mode == "ddp":
                return f"job {job_id} trains in step: there is nothing to merge"
            if not rounds.has_updates(session, job):
                raise rounds.NothingAccepted(f"no update of round {job.current_round} was uploaded yet; there is nothing to merge")
            rounds.stop_waiting(session, job, work.clock.now())
            closing = job.current_round
        while verify_next(work) or _others_verify(work, job_id):
            pass
        with database.write() as session:
            job = lock_job(session, job_id)
            if job.status not in JOB_ENDS and job.current_round == closing:  # else the server's own process went on meanwhile
                rounds.force_close(session, job, work.clock.now())
        while aggregate_next(work):
            pass
        with database.read() as session:
            status = session.scalar(select(Job.status).where(Job.id == job_id))
        return f"job {job_id} is now {status}"
    finally:
        work.keeper.close()
        executor.shutdown()
        database.dispose()


def _others_verify(work: Work, job_id: int) -> bool:
    """Whether another process has an upload of the job in hand; waits a moment for it. What it finds is paid, and may be merged."""
    with work.database.read() as session:
        is_busy = session.scalar(
            select(
                exists().where(
                    Attempt.job_id == job_id,
                    Attempt.status == "VERIFYING",
                    Attempt.summary.is_(None),
                    ~lease.is_free(Attempt, work.clock.now()),
                )
            )
        )
    if is_busy:
        time.sleep(_LOOK_AGAIN_S)
    return bool(is_busy)
