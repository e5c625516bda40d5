"""From an upload to an accepted update: read safely in a limited child, written anew by us, compared with the others, paid."""

import hashlib
from pathlib import Path

from sqlalchemy import select

from gridx.aggregation.safe_load import verify_in_child, verify_timeout_s
from gridx.aggregation.summary import UpdateCaps, UpdateRefused
from gridx.background.work import WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.core.errors import NotFound
from gridx.core.lease import LeaseLost
from gridx.core.wakeup import notify
from gridx.jobs import attempts
from gridx.jobs.agreement import decide_next
from gridx.jobs.models import Attempt, Subtask
from gridx.jobs.states import lock_job


def verify_next(work: Work) -> bool:
    """Inspect the oldest upload that nobody looks at. Returns False when there is none."""
    now = work.clock.now()
    with work.database.read() as session:
        row = session.execute(
            select(Attempt.id, Attempt.job_id)
            # A rank that ended well is VERIFYING too, and has nothing to inspect.
            .where(Attempt.status == "VERIFYING", Attempt.upload_sha256.is_not(None))
            .where(Attempt.summary.is_(None), lease.is_free(Attempt, now))
            .order_by(Attempt.id)
            .limit(1)
        ).one_or_none()
    if row is None:
        return decide_waiting(work)
    attempt_id, job_id = row
    with work.database.write() as session:
        token = lease.take(session, Attempt, attempt_id, now, WORK_LEASE_S, Attempt.status == "VERIFYING", Attempt.summary.is_(None))
    if token is not None:
        run_leased(
            work,
            Attempt,
            attempt_id,
            token,
            lambda: _inspect(work, attempt_id, token),
            lambda reason: _refuse(work, attempt_id, None, "agent", reason),
        )
        decide_all(work, job_id)
    return True


def decide_all(work: Work, job_id: int) -> bool:
    """Accept or refuse what can be decided of a job, one update a transaction. Returns whether anything was."""
    decided = False
    while True:
        try:
            with work.database.write() as session:
                if not decide_next(session, job_id, work.clock.now(), work.settings.offline_after_s):
                    return decided
        except NotFound:  # its owner deleted it meanwhile
            return decided
        decided = True


def decide_waiting(work: Work) -> bool:
    """Decide inspected updates that a crash, or the wait for a majority, left behind."""
    with work.database.read() as session:
        job_ids = session.scalars(
            select(Attempt.job_id).where(Attempt.status == "VERIFYING", Attempt.update_key.is_not(None)).distinct()
        ).all()
    decided = [decide_all(work, job_id) for job_id in job_ids]
    return any(decided)


def _inspect(work: Work, attempt_id: int, token: str) -> None:
    with work.database.read() as session:
        attempt = session.get_one(Attempt, attempt_id)
    caps = UpdateCaps(max_bytes=work.settings.max_update_bytes)
    key = f"jobs/{attempt.job_id}/updates/{attempt_id}-{token[:8]}.pth"
    with work.folder() as folder:
        source, canonical = folder / "upload.pth", folder / "canonical.pth"
        try:
            _fetch(work, attempt, source)
            summary = verify_in_child(source, canonical, caps, verify_timeout_s(attempt.upload_bytes or 0))
        except UpdateRefused as error:
            _refuse(work, attempt_id, token, error.code, error.detail)
            return
        work.store.put_file(key, canonical)
    with work.database.write() as session:
        lease.give_back(session, Attempt, attempt_id, token, summary=summary.to_json(), update_key=key)
        notify(session)
    # The raw upload was read for the last time. Should we die here, the sweep finds it.
    work.store.delete(attempt.upload_key)


def _fetch(work: Work, attempt: Attempt, target: Path) -> None:
    info = work.store.stat(attempt.upload_key)
    if info is None:
        raise UpdateRefused("missing", "the upload did not arrive")
    # Its link may still be used: look before a file of any size comes onto our disk, and again at what came.
    if info.size == attempt.upload_bytes:
        work.store.fetch(attempt.upload_key, target)
    size = target.stat().st_size if target.exists() else info.size
    if size != attempt.upload_bytes:
        raise UpdateRefused("altered", f"the upload has {size} bytes; {attempt.upload_bytes} were announced")
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != attempt.upload_sha256:
        raise UpdateRefused("altered", "the upload is not what the agent announced: its SHA-256 differs")


def _refuse(work: Work, attempt_id: int, token: str | None, code: str, reason: str) -> None:
    """Refuse an upload. The lease ends in the same transaction, so a process that lost it refuses nothing."""
    now = work.clock.now()
    with work.database.write() as session:
        attempt = session.get_one(Attempt, attempt_id)
        job = lock_job(session, attempt.job_id)
        session.refresh(attempt)
        if token is not None:
            lease.give_back(session, Attempt, attempt_id, token)
        if attempt.status != "VERIFYING":
            raise LeaseLost("this update was decided meanwhile")
        subtask = session.get_one(Subtask, attempt.subtask_id, populate_existing=True)
        attempts.end_badly(session, job, subtask, attempt, "REFUSED", code, reason, now, work.settings.offline_after_s)
    work.store.delete(attempt.upload_key)
