"""From an uploaded checkpoint to one that the next gang may start from: checked in a limited child and written anew, as every upload is."""

import hashlib

import structlog
from sqlalchemy import select

from gridx.aggregation.safe_load import verify_in_child, verify_timeout_s
from gridx.aggregation.summary import UpdateCaps, UpdateRefused
from gridx.background.work import WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.core.wakeup import notify
from gridx.jobs.gang_models import Checkpoint

_log = structlog.get_logger()
KEPT = 2
"""Sealed checkpoints of a job that stay: a gang may be downloading the one before the last."""


def seal_next(work: Work) -> bool:
    """Check the oldest uploaded checkpoint. Returns False when there is none."""
    now = work.clock.now()
    with work.database.read() as session:
        statement = select(Checkpoint.id).where(Checkpoint.status == "UPLOADED", lease.is_free(Checkpoint, now))
        checkpoint_id = session.scalar(statement.order_by(Checkpoint.id).limit(1))
    if checkpoint_id is None:
        return False
    with work.database.write() as session:
        token = lease.take(session, Checkpoint, checkpoint_id, now, WORK_LEASE_S, Checkpoint.status == "UPLOADED")
    if token is not None:
        run_leased(
            work,
            Checkpoint,
            checkpoint_id,
            token,
            lambda: _seal(work, checkpoint_id, token),
            lambda reason: _end(work, checkpoint_id, reason),
        )
    return True


def _seal(work: Work, checkpoint_id: int, token: str) -> None:
    with work.database.read() as session:
        row = session.get_one(Checkpoint, checkpoint_id)
    key = f"jobs/{row.job_id}/checkpoints/{row.gang_id}-{row.number}-{token[:8]}.pth"
    with work.folder() as folder:
        source, canonical = folder / "upload.pth", folder / "canonical.pth"
        try:
            info = work.store.stat(row.upload_key)
            if info is None or info.size != row.upload_bytes:
                raise UpdateRefused("altered", "the upload is not what was announced")
            work.store.fetch(row.upload_key, source)
            with source.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != row.upload_sha256:
                    raise UpdateRefused("altered", "the upload is not what was announced: its SHA-256 differs")
            caps = UpdateCaps(max_bytes=work.settings.max_update_bytes)
            summary = verify_in_child(source, canonical, caps, verify_timeout_s(row.upload_bytes))
        except UpdateRefused as error:
            _log.info("checkpoint refused", checkpoint=checkpoint_id, job=row.job_id, code=error.code)
            with work.database.write() as session:
                lease.give_back(session, Checkpoint, checkpoint_id, token, status="REFUSED", reason=error.detail[:2000])
            work.store.delete(row.upload_key)
            return
        work.store.put_file(key, canonical)
    with work.database.write() as session:
        lease.give_back(session, Checkpoint, checkpoint_id, token, status="SEALED", key=key, sha256=summary.sha256, bytes=summary.size)
        sealed = session.scalars(
            select(Checkpoint)
            .where(Checkpoint.job_id == row.job_id, Checkpoint.status == "SEALED", Checkpoint.key.is_not(None))
            .order_by(Checkpoint.gang_id.desc(), Checkpoint.number.desc())
        ).all()
        stale = [each.key for each in sealed[KEPT:] if each.key]
        for each in sealed[KEPT:]:
            each.key = None
        notify(session)
    for old in (row.upload_key, *stale):
        work.store.delete(old)


def _end(work: Work, checkpoint_id: int, reason: str) -> None:
    with work.database.write() as session:
        row = session.get_one(Checkpoint, checkpoint_id)
        if row.status == "UPLOADED":
            row.status, row.reason = "REFUSED", reason
