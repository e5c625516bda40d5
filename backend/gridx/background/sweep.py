"""Leftovers in storage: files that no row points at, of crashed work, refused uploads and deleted jobs."""

import shutil
import time
from collections import defaultdict
from datetime import datetime, timedelta

import structlog
from sqlalchemy import select

from gridx.background.work import Work
from gridx.datasets.models import Chunk, Dataset
from gridx.jobs import checkpoints, outputs
from gridx.jobs.models import Attempt, Job, Round
from gridx.storage.base import ObjectInfo
from gridx.storage.local import LocalStore

_KEEP = timedelta(hours=1)
"""Younger files may belong to work that is about to be committed."""
_log = structlog.get_logger()


def sweep_storage(work: Work) -> int:
    """Delete what nothing points at. Returns how many objects went."""
    _sweep_scratch(work)
    if isinstance(work.store, LocalStore):
        work.store.sweep_temporary(work.clock.now() - timedelta(days=1))
    oldest = work.clock.now() - _KEEP
    by_job: dict[str, list[ObjectInfo]] = defaultdict(list)
    deleted = 0
    for info in work.store.list("jobs/"):
        if info.modified < oldest:
            by_job[info.key.split("/")[1]].append(info)
    for job_id, objects in by_job.items():
        needed = _needed_by(work, int(job_id)) if job_id.isdecimal() else set[str]()
        for info in objects:
            if info.key not in needed:
                work.store.delete(info.key)
                deleted += 1
    deleted += _sweep_prefix(work, "submissions/", _scripts(work), oldest)
    deleted += _sweep_prefix(work, "datasets/", _datasets(work), oldest)
    if deleted:
        _log.info("storage swept", objects=deleted)
    return deleted


def _needed_by(work: Work, job_id: int) -> set[str]:
    with work.database.read() as session:
        chunks = session.scalars(select(Chunk.object_key).where(Chunk.job_id == job_id)).all()
        models = session.execute(select(Round.global_model_key, Round.state_key).where(Round.job_id == job_id)).all()
        own = session.execute(select(Job.schema_key, Job.safetensors_key).where(Job.id == job_id)).all()
        left = outputs.needed_keys(session, job_id)
        updates = session.scalars(select(Attempt.update_key).where(Attempt.job_id == job_id)).all()
        uploads = session.scalars(
            select(Attempt.upload_key).where(
                Attempt.job_id == job_id, Attempt.status.in_(("RUNNING", "VERIFYING")), Attempt.update_key.is_(None)
            )
        ).all()
        kept = checkpoints.needed_keys(session, job_id)
    maps = {key.rsplit("/", 1)[0] + "/rows.map" for key in chunks}
    return kept | {key for key in (*chunks, *maps, *left, *updates, *uploads, *(key for row in (*own, *models) for key in row)) if key}


def _scripts(work: Work) -> set[str]:
    with work.database.read() as session:
        rows = session.execute(select(Job.script_key, Job.requirements_key, Job.initial_model_key)).all()
    return {key for row in rows for key in row if key}


def _datasets(work: Work) -> set[str]:
    """Datasets that are offered, or that a job still has to be made from."""
    with work.database.read() as session:
        waiting = select(Job.dataset_id).where(Job.status == "PROCESSING")
        return set(session.scalars(select(Dataset.object_key).where(Dataset.deleted_at.is_(None) | Dataset.id.in_(waiting))))


def _sweep_prefix(work: Work, prefix: str, needed: set[str], oldest: datetime) -> int:
    stale = [info.key for info in work.store.list(prefix) if info.modified < oldest and info.key not in needed]
    for key in stale:
        work.store.delete(key)
    return len(stale)


def _sweep_scratch(work: Work) -> None:
    """Scratch folders of processes that were killed."""
    folder = work.settings.home / "tmp"
    if not folder.is_dir():
        return
    oldest = time.time() - 24 * 3600
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
