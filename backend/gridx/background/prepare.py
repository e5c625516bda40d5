"""From PROCESSING to RUNNING: the rows are dealt to chunks and round 1 opens."""

from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from gridx.aggregation.safe_load import verify_in_child, verify_timeout_s
from gridx.aggregation.summary import UpdateCaps, UpdateRefused, UpdateSummary
from gridx.background.work import WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.core.errors import NotFound
from gridx.datasets import lacking
from gridx.datasets.csv_records import CsvScan
from gridx.datasets.describe import describe
from gridx.datasets.labels import LabelsUnusable
from gridx.datasets.models import Chunk, Dataset
from gridx.datasets.partitioners import TooFewRows, Undealable
from gridx.datasets.splitting import SourceChanged, split
from gridx.jobs import rounds
from gridx.jobs.models import Job, Round
from gridx.jobs.states import lock_job, move

DESCRIBED_BYTES = 256 * 1024**2
"""Larger files are described only for scripts that mention the schema: it takes pandas half a minute a gigabyte."""
_SCHEMA = "schema.json"
_INITIAL = "initial.pth"


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
                split,
                source,
                found,
                job.partitioner,
                job.chunks,
                job.seed,
                folder / "chunks",
                job.partitioner_options,
                held_out=job.held_out_share,
            ).result()
            initial = _initial_model(work, job, folder)
        except UpdateRefused as error:
            _fail(work, job_id, f"the initial model cannot be used: {error}")
            return
        except (SourceChanged, TooFewRows, Undealable, LabelsUnusable, NotFound) as error:
            _fail(work, job_id, f"the dataset could not be split: {error}")
            return
        if schema is not None:
            schema.result()
        lacks = _lacks(work, dataset, folder, [chunk.path for chunk in done.chunks[: job.chunks]]) if schema is not None else None
        prefix = f"jobs/{job_id}/chunks/{token[:8]}"
        keys = [f"{prefix}/{index}.csv" for index in range(len(done.chunks))]
        for key, chunk in zip(keys, done.chunks, strict=True):
            work.store.put_file(key, chunk.path)
        work.store.put_file(f"{prefix}/rows.map", done.map_path)
        schema_key: str | None = None
        if schema is not None:
            schema_key = f"{prefix}/schema.json"
            work.store.put_file(schema_key, folder / _SCHEMA)
        initial_key = f"jobs/{job_id}/rounds/0-{token[:8]}.pth"
        if initial is not None:
            work.store.put_file(initial_key, folder / _INITIAL)
    now = work.clock.now()
    with work.database.write() as session:
        job = lock_job(session, job_id)
        lease.give_back(session, Job, job_id, token)
        if job.status != "PROCESSING":
            return
        job.schema_key = schema_key
        files = list(zip(keys, done.chunks, strict=True))
        # Behind the chunks come the held-out rows, once for each evaluation of a round.
        files += files[job.chunks :] * (job.evaluations - 1)
        session.add_all(
            Chunk(
                dataset_id=job.dataset_id,
                job_id=job_id,
                index=index,
                rows=chunk.rows,
                bytes=chunk.bytes,
                sha256=chunk.sha256,
                object_key=key,
                lacks=lacks[index] if lacks is not None and index < job.chunks else None,
            )
            for index, (key, chunk) in enumerate(files)
        )
        session.flush()
        if initial is not None:
            session.add(_round_zero(job_id, initial_key, initial, now))
        rounds.open_round(session, job, 1, initial.to_json() if initial else None, now)
        text = f"{sum(chunk.rows for chunk in done.chunks[: job.chunks])} rows were dealt to {job.chunks} chunks"
        if job.evaluations:
            text += f"; {done.chunks[job.chunks].rows} rows are held out"
        move(session, job, "RUNNING", now=now, text=text)


def _lacks(work: Work, dataset: Dataset, folder: Path, chunks: list[Path]) -> list[dict[str, list[Any]]] | None:
    """What each chunk has no row of, to explain a refusal with; None for a large dataset."""
    if dataset.bytes > lacking.MOST_BYTES:
        return None
    return work.executor.submit(lacking.lacking, folder / _SCHEMA, chunks, dataset.delimiter).result()


def _initial_model(work: Work, job: Job, folder: Path) -> UpdateSummary | None:
    """The model that the buyer gave, read as warily as any upload and written anew. Raises UpdateRefused, NotFound."""
    if job.initial_model_key is None:
        return None
    source = folder / "initial-upload.pth"
    work.store.fetch(job.initial_model_key, source)
    caps = UpdateCaps(max_bytes=work.settings.max_update_bytes)
    return verify_in_child(source, folder / _INITIAL, caps, verify_timeout_s(source.stat().st_size))


def _round_zero(job_id: int, key: str, model: UpdateSummary, now: datetime) -> Round:
    """The initial model stands where round 1 looks for the global model to start from."""
    return Round(
        job_id=job_id,
        number=0,
        reference=model.to_json(),
        global_model_key=key,
        global_model_sha256=model.sha256,
        global_model_bytes=model.size,
        opened_at=now,
        closed_at=now,
    )


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
