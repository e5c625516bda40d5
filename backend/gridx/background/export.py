"""The final model once more, as safetensors: a file without code in it, for those who do not want to unpickle."""

import hashlib
from pathlib import Path

import structlog
from sqlalchemy import select

from gridx.background.work import MAX_WORK_FAILURES, WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.jobs.models import Job

_log = structlog.get_logger()


def export_next(work: Work) -> bool:
    """Write the oldest final model that is not there as safetensors yet. Returns False when none is left."""
    now = work.clock.now()
    where = (Job.status == "COMPLETED", Job.final_model_key.is_not(None), Job.safetensors_key.is_(None))
    with work.database.read() as session:
        statement = select(Job.id).where(*where, Job.work_failures < MAX_WORK_FAILURES, lease.is_free(Job, now)).order_by(Job.id).limit(1)
        job_id = session.scalar(statement)
    if job_id is None:
        return False
    with work.database.write() as session:
        token = lease.take(session, Job, job_id, now, WORK_LEASE_S, *where)
    if token is not None:
        run_leased(work, Job, job_id, token, lambda: _export(work, job_id, token), lambda reason: _give_up(job_id, reason))
    return True


def write_safetensors(source: Path, target: Path, metadata: dict[str, str]) -> None:
    """A state_dict that we wrote ourselves, tensor by tensor in the other format. Needs the model's size in memory."""
    import torch  # in the executor's process, which has it: the background itself does without its seconds and 200 MB
    from safetensors.torch import save_file

    state = torch.load(source, map_location="cpu", weights_only=True)
    # Two names may share one tensor, which safetensors refuses.
    save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, target, metadata)


def _export(work: Work, job_id: int, token: str) -> None:
    with work.database.read() as session:
        job = session.get_one(Job, job_id)
    key = f"jobs/{job_id}/final-{token[:8]}.safetensors"
    metadata = {"format": "pt", "grid_x_job": str(job_id), "final_model_sha256": job.final_model_sha256 or ""}
    with work.folder() as folder:
        source, target = folder / "model.pth", folder / "model.safetensors"
        work.store.fetch(job.final_model_key or "", source)
        work.executor.submit(write_safetensors, source, target, metadata).result()
        with target.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = target.stat().st_size
        work.store.put_file(key, target)
    with work.database.write() as session:
        lease.give_back(session, Job, job_id, token, safetensors_key=key, safetensors_sha256=sha256, safetensors_bytes=size)


def _give_up(job_id: int, reason: str) -> None:
    """The job is done and paid; its `.pth` is there."""
    _log.error("no safetensors", job=job_id, reason=reason)
