"""From PROCESSING to RUNNING: the rows are dealt to chunks and round 1 opens."""

from concurrent.futures import Future
from pathlib import Path

from sqlalchemy import select

from gridx.background.work import WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.core.errors import NotFound
from gridx.datasets.csv_records import CsvScan
from gridx.datasets.describe import describe
from gridx.datasets.labels import LabelsUnusable
from gridx.datasets.models import Chunk, Dataset
from gridx.datasets.partitioners import TooFewRows, Undealable
from gridx.datasets.splitting import SourceChanged, split
from gridx.jobs import rounds
from gridx.jobs.models import Job
from gridx.jobs.states import lock_job, move

DESCRIBED_BYTES = 256 * 1024**2
"""Larger files are described only for scripts that mention the schema: it takes pandas half a minute a gigabyte."""
_SCHEMA = "schema.json"


def prepare_next(work: Work) -> bool:
    """Prepare the oldest waiting job. Returns False when none waits."""
    now = work.clock.now()
    with work.database.read() as session:
        job_id = session.scalar(select(Job.id).where(Job.status == "PROCESSING", lease.is_free(Job, now)).order_by(Job.id).limit(1))
    if job_id is None:
        return False
    with work.database.write() as session:
        token = lease.take(session, Job, job_id, now, WORK_LEASE_S, Job.status == "PROCESSING")
    if token is not None:
        run_leased(work, Job, job_id, token, lambda: _prepare(work, job_id, token), lambda reason: _fail(work, job_id, reason))
    return True


def _prepare(work: Work, job_id: int, token: str) -> None:
    with work.database.read() as session:
        job = session.get_one(Job, job_id)
        dataset = session.get_one(Dataset, job.dataset_id)
    with work.folder() as folder:
        source = folder / "dataset.csv"
        try:
            work.store.fetch(dataset.object_key, source)
            found = CsvScan.from_json(dataset.scan)
            schema = _described(work, job, dataset, found, source, folder)
            done = work.executor.submit(
                split, source, found, job.partitioner, job.chunks, job.seed, folder / "chunks", job.partitioner_options
            ).result()
        except (SourceChanged, TooFewRows, Undealable, LabelsUnusable, NotFound) as error:
            _fail(work, job_id, f"the dataset could not be split: {error}")
            return
        prefix = f"jobs/{job_id}/chunks/{token[:8]}"
        keys = [f"{prefix}/{index}.csv" for index in range(job.chunks)]
        for key, chunk in zip(keys, done.chunks, strict=True):
            work.store.put_file(key, chunk.path)
        work.store.put_file(f"{prefix}/rows.map", done.map_path)
        schema_key: str | None = None
        if schema is not None:
            schema.result()
            schema_key = f"{prefix}/schema.json"
            work.store.put_file(schema_key, folder / _SCHEMA)
    now = work.clock.now()
    with work.database.write() as session:
        job = lock_job(session, job_id)
        lease.give_back(session, Job, job_id, token)
        if job.status != "PROCESSING":
            return
        job.schema_key = schema_key
        session.add_all(
            Chunk(
                dataset_id=job.dataset_id,
                job_id=job_id,
                index=index,
                rows=chunk.rows,
                bytes=chunk.bytes,
                sha256=chunk.sha256,
                object_key=key,
            )
            for index, (key, chunk) in enumerate(zip(keys, done.chunks, strict=True))
        )
        rounds.open_round(session, job, 1, [chunk.rows for chunk in done.chunks], None, now)
        move(session, job, "RUNNING", now=now, text=f"{sum(chunk.rows for chunk in done.chunks)} rows were dealt to {job.chunks} chunks")


def _described(work: Work, job: Job, dataset: Dataset, found: CsvScan, source: Path, folder: Path) -> "Future[None] | None":
    """schema.json in the making, beside the split; None for a large file that the script has no use for."""
    if dataset.bytes > DESCRIBED_BYTES:
        with work.store.open(job.script_key) as script:
            if b"schema" not in script.read():
                return None
    return work.executor.submit(describe, source, found, folder / _SCHEMA)


def _fail(work: Work, job_id: int, reason: str) -> None:
    with work.database.write() as session:
        job = lock_job(session, job_id)
        if job.status == "PROCESSING":
            rounds.fail_job(session, job, reason, work.clock.now())
