"""The buyers' routes."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse

from gridx.accounts.deps import BuyerUser, CurrentUser
from gridx.accounts.service import Actor
from gridx.core.db import Database
from gridx.core.deps import ClockDep, DatabaseDep, ReadSession, SettingsDep, WriteSession
from gridx.core.errors import GridxError, NotFound
from gridx.core.http import ERRORS
from gridx.core.settings import Settings
from gridx.datasets import service as datasets
from gridx.datasets.receive import Form, receive_form
from gridx.jobs import artifacts, service, views
from gridx.jobs import card as cards
from gridx.jobs.deps import CatalogueDep
from gridx.jobs.forms import FILE_LIMITS, UPLOAD_SCHEMA, read_upload
from gridx.jobs.options import JobRequest
from gridx.jobs.recipes.orders import order_of
from gridx.jobs.rules import check_options
from gridx.jobs.schemas import (
    ArtifactList,
    ArtifactView,
    DownloadView,
    JobCreated,
    JobSummary,
    JobView,
    LogList,
    Message,
    MetricList,
    ModelCard,
    ResultsView,
)
from gridx.storage.base import ObjectStore
from gridx.storage.deps import StoreDep
from gridx.storage.router import FILE_HEADERS

router = APIRouter(prefix="/jobs", tags=["jobs"], responses=ERRORS)

LINK_S = 3600.0
_FORM_OVERHEAD_BYTES = 2 * 1024 * 1024
JobId = Annotated[int, Path(ge=1, le=2**53)]
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


class CsvResponse(StreamingResponse):
    media_type = "text/csv"


@router.post("/upload", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload(
    request: Request,
    actor: BuyerUser,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    clock: ClockDep,
    idempotency_key: IdempotencyKey = None,
) -> JobCreated:
    """Submit a job with its files in one multipart form. The body is read only after the caller is known."""
    limits = FILE_LIMITS | {"file_data": settings.max_upload_bytes, "file_model": settings.max_update_bytes}
    async with receive_form(request, settings.home / "tmp", file_limits=limits, limit=sum(limits.values()) + _FORM_OVERHEAD_BYTES) as form:
        return await to_thread.run_sync(_upload, form, actor, database, store, settings, clock.now(), idempotency_key)


@router.post("", status_code=201)
def submit(
    body: JobRequest,
    actor: BuyerUser,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    clock: ClockDep,
    offered: CatalogueDep,
    idempotency_key: IdempotencyKey = None,
) -> JobCreated:
    """Submit a job over a dataset that is already there: with a script, or with a `model_type` and no code at all."""
    check_options(body)
    request_hash = service.hash_request(body)
    with database.read() as session:
        earlier = service.replayed(session, actor, idempotency_key, request_hash, clock.now(), settings)
        if earlier is not None:
            return _created(earlier)
        service.check_funds(session, actor, body)
    found = order_of(database, store, offered, actor, body, clock.now())
    order = service.Submission(
        options=body.model_copy(update={"arguments": found.arguments}),
        dataset_id=found.dataset_id,
        script=found.script,
        requirements=found.requirements,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        warnings=found.warnings,
    )
    return _created(service.submit(database, store, actor, order, clock.now(), settings))


@router.get("/list/{user_id}")
def list_jobs(user_id: JobId, actor: CurrentUser, session: ReadSession) -> list[JobSummary]:
    """The caller's jobs, newest first."""
    if user_id != actor.id:
        raise NotFound(f"there is no user {user_id} that you may look at")
    return views.list_jobs(session, actor.id)


@router.get("/download/{job_id}")
def download(job_id: JobId, actor: CurrentUser, database: DatabaseDep, store: StoreDep) -> DownloadView:
    """Where the final model can be had; null until there is one."""
    with database.read() as session:
        job = service.owned_job(session, actor, job_id)
    url = store.signed_get(job.final_model_key, LINK_S, "final_model.pth") if job.final_model_key else None
    return DownloadView(job_id=job.id, title=job.title, status=job.status, final_result_url=url)


@router.get("/{job_id}")
def get_job(
    job_id: JobId,
    actor: CurrentUser,
    session: ReadSession,
    clock: ClockDep,
    settings: SettingsDep,
    round: Annotated[int | None, Query(ge=1, le=2**31)] = None,
) -> JobView:
    job = service.owned_job(session, actor, job_id)
    return views.job_view(session, job, round, clock.now(), settings.offline_after_s)


@router.post("/{job_id}/cancel")
def cancel(job_id: JobId, actor: CurrentUser, session: WriteSession, clock: ClockDep) -> Message:
    """End a job. Updates that were already uploaded are verified and paid; the rest comes back."""
    job = service.cancel(session, actor, job_id, clock.now())
    return Message(message=f"job {job.id} is cancelled; unused credits were returned")


@router.delete("/{job_id}")
def delete(job_id: JobId, actor: CurrentUser, database: DatabaseDep, store: StoreDep) -> Message:
    """Remove a finished job and its files."""
    with database.write() as session:
        prefixes = service.delete(session, actor, job_id)
    for prefix in prefixes:
        for info in list(store.list(prefix)):
            store.delete(info.key)
    return Message(message=f"job {job_id} and its files are gone")


@router.get("/{job_id}/results")
def results(job_id: JobId, actor: CurrentUser, session: ReadSession) -> ResultsView:
    return views.results(session, service.owned_job(session, actor, job_id))


@router.get("/{job_id}/artifacts")
def list_artifacts(job_id: JobId, actor: CurrentUser, database: DatabaseDep, store: StoreDep) -> ArtifactList:
    with database.read() as session:
        found = artifacts.list_artifacts(session, service.owned_job(session, actor, job_id))
    names = set(ArtifactView.model_fields) - {"url"}
    return ArtifactList(
        items=[
            ArtifactView(url=store.signed_get(item.key, LINK_S, item.filename), **{name: getattr(item, name) for name in names})
            for item in found
        ]
    )


@router.get("/{job_id}/script", response_class=PlainTextResponse)
def script(job_id: JobId, actor: CurrentUser, database: DatabaseDep, store: StoreDep) -> PlainTextResponse:
    """The script itself, from this origin wherever files lie: for pages that show it. Links to download it are among the artifacts."""
    with database.read() as session:
        job = service.owned_job(session, actor, job_id)
    return _text(store, job.script_key)


@router.get("/{job_id}/requirements", response_class=PlainTextResponse)
def requirements(job_id: JobId, actor: CurrentUser, database: DatabaseDep, store: StoreDep) -> PlainTextResponse:
    """Its requirements.txt; empty when it has none."""
    with database.read() as session:
        job = service.owned_job(session, actor, job_id)
    return _text(store, job.requirements_key)


@router.get("/{job_id}/card")
def card(job_id: JobId, actor: CurrentUser, session: ReadSession) -> ModelCard:
    """What the model was made from, by whom, and how well."""
    return cards.model_card(session, service.owned_job(session, actor, job_id))


@router.get("/{job_id}/card.md", response_class=PlainTextResponse)
def card_as_markdown(job_id: JobId, actor: CurrentUser, session: ReadSession) -> PlainTextResponse:
    """The same for people, to lie beside the model."""
    text = cards.as_markdown(cards.model_card(session, service.owned_job(session, actor, job_id)))
    return PlainTextResponse(text, headers={**FILE_HEADERS, "Content-Disposition": f'attachment; filename="job-{job_id}-card.md"'})


@router.get("/{job_id}/metrics.csv", response_class=CsvResponse)
def metrics_as_csv(job_id: JobId, actor: CurrentUser, database: DatabaseDep) -> CsvResponse:
    """All rounds' series at once, a row for each report."""
    with database.read() as session:
        service.owned_job(session, actor, job_id)
    headers = {**FILE_HEADERS, "Content-Disposition": f'attachment; filename="job-{job_id}-metrics.csv"'}
    return CsvResponse(_csv_pieces(database, job_id), headers=headers)


@router.get("/{job_id}/metrics")
def metrics(
    job_id: JobId,
    actor: CurrentUser,
    session: ReadSession,
    after: Annotated[str, Query(pattern=r"^[0-9]{1,15}:-?[0-9]{1,15}$")] = "0:-1",
    round: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> MetricList:
    """Per-epoch series, of all rounds or of one. `next` is the `after` of the following page."""
    service.owned_job(session, actor, job_id)
    attempt, seq = after.split(":")
    items, place = views.metrics(session, job_id, (int(attempt), int(seq)), limit, round)
    return MetricList(items=items, next=f"{place[0]}:{place[1]}" if place else None)


@router.get("/{job_id}/logs")
def logs(
    job_id: JobId,
    actor: CurrentUser,
    session: ReadSession,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    subtask: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> LogList:
    """What the attempts printed: head and tail of each."""
    service.owned_job(session, actor, job_id)
    items, place = views.logs(session, job_id, after, subtask, limit)
    return LogList(items=items, next=place)


def _csv_pieces(database: Database, job_id: int) -> Iterator[str]:
    """The header and a page of reports at a time, each from a session of its own."""
    columns = ("round", "chunk", "agent_id", "attempt", "seq", "epoch", "loss", "accuracy", "more", "at")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    place: tuple[int, int] | None = (0, -1)
    while place is not None:
        with database.read() as session:
            items, place = views.metrics(session, job_id, place, 5000)
        for item in items:
            values = item.model_dump(mode="json")
            writer.writerow([json.dumps(values[name]) if name == "more" else values[name] for name in columns])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _text(store: ObjectStore, key: str | None) -> PlainTextResponse:
    content = b""
    if key is not None:
        with store.open(key) as file:
            content = file.read()
    return PlainTextResponse(content, headers={**FILE_HEADERS, "Content-Disposition": "attachment"})


def _upload(
    form: Form,
    actor: Actor,
    database: Database,
    store: ObjectStore,
    settings: Settings,
    now: datetime,
    idempotency_key: str | None,
) -> JobCreated:
    parts = read_upload(form)
    request_hash = service.hash_request(parts.options, parts.script, parts.requirements, parts.data_identity())
    with database.read() as session:
        earlier = service.replayed(session, actor, idempotency_key, request_hash, now, settings)
        if earlier is not None:
            return _created(earlier)
    service.check_order(database, actor, parts.options, parts.script, parts.requirements)
    dataset_id = parts.dataset_id
    if parts.data is not None:
        name = parts.data.filename or f"{parts.options.title}.csv"
        dataset_id = datasets.create_from_file(database, store, actor, parts.data.path, name=name, sha256=parts.data.sha256, now=now).id
    assert dataset_id is not None  # read_upload demands one of the two
    model = parts.model.path if parts.model is not None else None
    order = service.Submission(parts.options, dataset_id, parts.script, parts.requirements, idempotency_key, request_hash, model)
    try:
        return _created(service.submit(database, store, actor, order, now, settings))
    except GridxError:
        if parts.data is not None:
            # Nobody was told of this dataset; whoever mends the order sends its file again.
            with database.write() as session:
                datasets.delete_dataset(session, actor, dataset_id, now)
        raise


def _created(done: service.Submitted) -> JobCreated:
    message = f"job {done.job_id} was submitted; {done.price} credits are held until its work is verified"
    if done.idle_agents == 0:
        message += ". No agent is idle now; the job waits for one"
    return JobCreated(
        job_id=done.job_id, status=done.status, price=done.price, message=message, idle_agents=done.idle_agents, warnings=done.warnings
    )
