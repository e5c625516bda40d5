"""Expired leases, passed deadlines, and mercy after the server's own downtime."""

from datetime import datetime, timedelta

import structlog
from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from gridx.background.work import Work
from gridx.core.errors import NotFound
from gridx.jobs import dispatch
from gridx.jobs.models import Attempt, BackgroundTick
from gridx.jobs.states import lock_job

_TICK_ID = 1
_DEADLINE_GRACE_S = 30.0
_log = structlog.get_logger()


def expire_leases(work: Work) -> int:
    """End attempts whose agent fell silent or whose time limit passed. Returns how many.

    When background work (or the database) was away for longer than half a lease and three looks, agents could not extend theirs:
    all get a fresh one.
    """
    now = work.clock.now()
    if _was_away(work, now):
        return 0
    with work.database.read() as session:
        overdue = session.execute(
            select(Attempt.id, Attempt.job_id, Attempt.deadline_at)
            .where(
                Attempt.status == "RUNNING",
                or_(Attempt.lease_expires_at < now, Attempt.deadline_at < now - timedelta(seconds=_DEADLINE_GRACE_S)),
            )
            .order_by(Attempt.job_id, Attempt.id)
        ).all()
    ended = 0
    for attempt_id, job_id, deadline_at in overdue:
        if deadline_at < now:
            status, fault, reason = "FAILED", "timeout", "the time limit passed before an update was uploaded"
        else:
            status, fault, reason = "LOST", "lost", f"its agent was not heard of for {work.settings.lease_s:g} s"
        with work.database.write() as session:
            ended += _end_if_overdue(work, session, attempt_id, job_id, now, status, fault, reason)
    return ended


def _end_if_overdue(
    work: Work, session: Session, attempt_id: int, job_id: int, now: datetime, status: str, fault: str, reason: str
) -> bool:
    # A heartbeat may have come in between: look again under the row's lock. The job's comes first, as for everybody.
    try:
        lock_job(session, job_id)
    except NotFound:  # its owner deleted it meanwhile
        return False
    attempt = session.scalar(select(Attempt).where(Attempt.id == attempt_id).with_for_update())
    if attempt is None or (status == "LOST" and attempt.lease_expires_at >= now):
        return False
    return dispatch.end_lease(session, attempt_id, job_id, status, fault, reason, now, work.settings)


def _was_away(work: Work, now: datetime) -> bool:
    with work.database.write() as session:
        tick = session.get(BackgroundTick, _TICK_ID, with_for_update=True)
        if tick is None:
            session.add(BackgroundTick(id=_TICK_ID, at=now))
            return False
        silent_s = (now - tick.at).total_seconds()
        tick.at = max(now, tick.at)
        if silent_s <= max(work.settings.lease_s / 2, 3 * work.settings.sweep_s):
            return False
        fresh = now + timedelta(seconds=work.settings.lease_s)
        session.execute(update(Attempt).where(Attempt.status == "RUNNING", Attempt.lease_expires_at < fresh).values(lease_expires_at=fresh))
    _log.info("leases renewed after downtime", silent_s=round(silent_s, 1))
    return True
