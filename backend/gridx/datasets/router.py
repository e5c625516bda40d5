"""/datasets: upload in one go or piece by piece, list, look at, delete. The caller is known before a byte of a body is read."""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import TypeAdapter, ValidationError

from gridx.accounts.deps import BuyerUser
from gridx.accounts.service import Actor
from gridx.core.db import Database
from gridx.core.deps import ClockDep, DatabaseDep, ReadSession, SettingsDep, WriteSession
from gridx.core.errors import Invalid, NotFound
from gridx.core.http import ERRORS
from gridx.core.settings import Settings
from gridx.core.streams import stream_to_file, too_large
from gridx.core.text import MAX_ID, Id, Text
from gridx.datasets import preview, service
from gridx.datasets.csv_records import CsvScan
from gridx.datasets.deal_choice import DealChoice
from gridx.datasets.deal_preview import MOST_BYTES, preview_deal
from gridx.datasets.models import Dataset
from gridx.datasets.partitioners import TooFewRows, Undealable
from gridx.datasets.receive import is_multipart, receive_form
from gridx.datasets.schemas import ChunkPreview, DatasetList, DatasetName, DatasetOut, DatasetPreview, DealPreview, UploadIn, UploadOut
from gridx.datasets.uploads import Upload, Uploads
from gridx.storage.base import ObjectStore
from gridx.storage.deps import StoreDep

router = APIRouter(prefix="/datasets", tags=["datasets"], responses=ERRORS)

_FORM_OVERHEAD_BYTES = 1 << 20
_NAME: TypeAdapter[str] = TypeAdapter(DatasetName)
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file_data"],
                    "properties": {"file_data": {"type": "string", "format": "binary"}, "name": {"type": "string"}},
                }
            },
        },
    }
}
_PIECE: dict[str, Any] = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@router.post("", status_code=201, openapi_extra=_BODY)
async def upload_dataset(
    request: Request,
    actor: BuyerUser,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    clock: ClockDep,
    name: Annotated[DatasetName | None, Query()] = None,
) -> DatasetOut:
    """Upload a CSV: as the body itself, or as the field `file_data` of a form. 422 names the line that cannot be used."""
    limit, folder = settings.max_upload_bytes, settings.home / "tmp"

    def create(path: Path, sha256: str, shown: str) -> DatasetOut:
        dataset = service.create_from_file(database, store, actor, path, name=shown, sha256=sha256, now=clock.now())
        return DatasetOut.model_validate(dataset)

    if is_multipart(request):
        form_limit = limit + _FORM_OVERHEAD_BYTES
        async with receive_form(request, folder, file_limits={"file_data": limit}, limit=form_limit) as form:
            file = form.files.get("file_data")
            if file is None:
                raise Invalid("file_data: the CSV is missing")
            shown = name or _form_name(form.fields.get("name")) or file.filename
            return await to_thread.run_sync(create, file.path, file.sha256, shown)
    path = folder / f"dataset-{secrets.token_hex(16)}"
    _, sha256 = await stream_to_file(request, path, limit)
    try:
        return await to_thread.run_sync(create, path, sha256, name or "")
    finally:
        path.unlink(missing_ok=True)


@router.get("")
def list_datasets(
    actor: BuyerUser,
    session: ReadSession,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DatasetList:
    rows = service.list_datasets(session, actor, before=before, limit=limit + 1)
    items = [DatasetOut.model_validate(row) for row in rows[:limit]]
    return DatasetList(items=items, next=items[-1].id if len(rows) > limit else None)


@router.post("/uploads", status_code=201)
def begin_upload(body: UploadIn, actor: BuyerUser, settings: SettingsDep) -> UploadOut:
    """Begin a resumable upload. Send the bytes with PATCH, in as many pieces as the network needs."""
    if body.bytes > settings.max_upload_bytes:
        raise too_large(settings.max_upload_bytes)
    upload = Uploads(settings.home).begin(actor, name=body.name, size=body.bytes, sha256=body.sha256)
    return UploadOut(upload_id=upload.id, offset=0, bytes=upload.bytes)


@router.head("/uploads/{upload_id}", include_in_schema=False)
@router.get("/uploads/{upload_id}")
def look_at_upload(upload_id: Text, actor: BuyerUser, response: Response, database: DatabaseDep, settings: SettingsDep) -> UploadOut:
    """How much has arrived, also as the headers Upload-Offset and Upload-Length."""
    state = _finished(database, actor, upload_id)
    if state is None:
        uploads = Uploads(settings.home)
        upload = uploads.get(actor, upload_id)
        state = UploadOut(upload_id=upload_id, offset=uploads.offset(actor, upload), bytes=upload.bytes)
    return _with_headers(state, response)


@router.patch("/uploads/{upload_id}", openapi_extra=_PIECE)
async def continue_upload(
    upload_id: Text,
    request: Request,
    response: Response,
    actor: BuyerUser,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    clock: ClockDep,
    upload_offset: Annotated[int, Header(ge=0, le=MAX_ID)],
) -> UploadOut:
    """Add the body's bytes at Upload-Offset; 409 names the right one. The last piece is answered with the dataset."""
    uploads = Uploads(settings.home)
    try:
        upload = await to_thread.run_sync(uploads.get, actor, upload_id)
    except NotFound:
        state = await to_thread.run_sync(_finished, database, actor, upload_id)
        if state is None:
            raise
        return _with_headers(state, response)
    offset = await uploads.append(actor, upload, upload_offset, request.stream())
    state = UploadOut(upload_id=upload_id, offset=offset, bytes=upload.bytes)
    if offset == upload.bytes:
        state.dataset = await to_thread.run_sync(_finish, uploads, upload, actor, database, store, clock, settings)
    return _with_headers(state, response)


@router.delete("/uploads/{upload_id}", status_code=204)
def give_up_upload(upload_id: Text, actor: BuyerUser, settings: SettingsDep) -> None:
    Uploads(settings.home).end(actor, upload_id)


@router.get("/{dataset_id}")
def get_dataset(dataset_id: Id, actor: BuyerUser, session: ReadSession) -> DatasetOut:
    return DatasetOut.model_validate(service.get_dataset(session, actor, dataset_id))


@router.get("/{dataset_id}/preview")
def preview_dataset(
    dataset_id: Id,
    actor: BuyerUser,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    choice: Annotated[DealChoice, Query()],
) -> DatasetPreview:
    """The first records, however large the file is. With `chunks`: the rows of each chunk and, of a column, its values there."""
    with database.read() as session:
        dataset = service.get_dataset(session, actor, dataset_id)
    deal = None if choice.chunks is None else _preview_deal(store, settings, dataset, choice, choice.chunks)
    return DatasetPreview(columns=dataset.columns, rows=preview.first_rows(store, dataset, choice.rows), deal=deal)


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: Id, actor: BuyerUser, session: WriteSession, clock: ClockDep) -> None:
    """Jobs that were made from it go on."""
    service.delete_dataset(session, actor, dataset_id, clock.now())


def _preview_deal(store: ObjectStore, settings: Settings, dataset: Dataset, choice: DealChoice, chunks: int) -> DealPreview:
    column, options = choice.column, choice.parsed_options(chunks)
    if column is not None and column not in dataset.columns:
        raise Invalid(f"column: the dataset has no column {column!r}; it has: {', '.join(dataset.columns[:50])}"[:2000])
    is_large = dataset.bytes > MOST_BYTES
    if is_large and "column" in options:
        raise Invalid("column: the file is too large for a preview by column; the job itself can be dealt like this")
    parent = settings.home / "tmp"
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=parent, prefix="preview-", ignore_cleanup_errors=True) as folder:
        source = Path(folder) / "dataset.csv"
        if not is_large:
            store.fetch(dataset.object_key, source)
        try:
            found = preview_deal(
                source, CsvScan.from_json(dataset.scan), choice.partitioner, chunks, choice.seed, options, None if is_large else column
            )
        except (TooFewRows, Undealable) as error:
            raise Invalid(f"chunks: {error}") from None
    counts = found.counts or [None] * chunks
    large = ["the file is too large for its classes to be counted here"] if is_large and column is not None else []
    return DealPreview(
        labels=found.labels,
        chunks=[ChunkPreview(chunk=place, rows=size, labels=counts[place]) for place, size in enumerate(found.sizes)],
        warnings=found.warnings + large,
        proposed=found.proposed,
    )


def _finish(
    uploads: Uploads, upload: Upload, actor: Actor, database: Database, store: StoreDep, clock: ClockDep, settings: Settings
) -> DatasetOut:
    """Make the dataset of an upload that has arrived whole. A refused file ends the upload as well."""
    with uploads.exclusive(actor, upload):
        made = service.find_by_upload(database, actor, upload.id)
        if made is None:
            sha256 = uploads.check_hash(actor, upload)
            try:
                made = service.create_from_file(
                    database,
                    store,
                    actor,
                    uploads.part(actor, upload),
                    name=upload.name,
                    sha256=sha256,
                    now=clock.now(),
                    upload_id=upload.id,
                )
            except service.DatasetRefused:
                uploads.end(actor, upload.id)
                raise
        uploads.end(actor, upload.id)
    return DatasetOut.model_validate(made)


def _finished(database: Database, actor: Actor, upload_id: str) -> UploadOut | None:
    dataset = service.find_by_upload(database, actor, upload_id)
    if dataset is None:
        return None
    return UploadOut(upload_id=upload_id, offset=dataset.bytes, bytes=dataset.bytes, dataset=DatasetOut.model_validate(dataset))


def _form_name(value: str | None) -> str | None:
    if not value:
        return None
    try:
        return _NAME.validate_python(value)
    except ValidationError:
        raise Invalid("name: must be 1 to 200 characters") from None


def _with_headers(state: UploadOut, response: Response) -> UploadOut:
    response.headers["Upload-Offset"] = str(state.offset)
    response.headers["Upload-Length"] = str(state.bytes)
    return state
