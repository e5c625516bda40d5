"""Datasets: making one from a file on disk, reading and deleting them."""

import secrets
from datetime import datetime
from pathlib import Path

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.accounts.service import Actor
from gridx.core.db import Database
from gridx.core.errors import GridxError, NotFound
from gridx.datasets.csv_records import CsvRefused, CsvScan, scan
from gridx.datasets.models import Dataset
from gridx.storage.base import ObjectStore

DATASET_PREFIX = "datasets/"
"""Where the objects lie. One without a row in the database was left by a process that died; nothing refers to it."""

_MAX_NAME_CHARS = 200


class DatasetRefused(GridxError):
    """The file is no CSV that can be dealt to chunks. The detail names the line."""

    status = 422
    code = "csv_refused"


def create_from_file(
    database: Database,
    store: ObjectStore,
    actor: Actor,
    path: Path,
    *,
    name: str,
    sha256: str,
    now: datetime,
    upload_id: str | None = None,
) -> Dataset:
    """Scan the CSV at `path`, move it into the store, and keep it as a dataset. Slow for large files; opens its own short session.

    The file is gone from `path` afterwards, unless it was refused. With an `upload_id` that has made a dataset before, that one is
    returned.

    Raises:
        DatasetRefused: the file cannot be dealt to chunks.
    """
    found = _scanned(path)
    key = f"{DATASET_PREFIX}{actor.id}/{secrets.token_hex(16)}.csv"
    dataset = Dataset(
        owner_id=actor.id,
        name=clean_name(name),
        rows=found.rows,
        columns=found.columns,
        delimiter=found.delimiter,
        bytes=found.bytes,
        sha256=sha256,
        object_key=key,
        header_end=found.header_end,
        scan=found.to_json(),
        warnings=found.warnings,
        upload_id=upload_id,
        created_at=now,
    )
    store.put_file(key, path)
    try:
        with database.write() as session:
            session.add(dataset)
    except IntegrityError:
        store.delete(key)
        made = find_by_upload(database, actor, upload_id) if upload_id else None
        if made is None:
            raise
        return made
    except BaseException:
        store.delete(key)
        raise
    return dataset


def clean_name(name: str) -> str:
    """A name to show: the last part of a path, on one line, at most 200 characters."""
    last = name.replace("\\", "/").rpartition("/")[2]
    printable = "".join(character if character.isprintable() else " " for character in last)
    return printable.strip()[:_MAX_NAME_CHARS] or "dataset.csv"


def get_dataset(session: Session, actor: Actor, dataset_id: int) -> Dataset:
    """One of the actor's, or of the catalogue. Raises NotFound when it is deleted or somebody else's."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or (dataset.owner_id != actor.id and dataset.catalogue is None) or dataset.deleted_at is not None:
        raise NotFound("there is no such dataset")
    return dataset


def find_by_name(session: Session, actor: Actor, name: str) -> Dataset:
    """The actor's newest dataset of that name. Raises NotFound."""
    statement = _own(actor).where(Dataset.name == name).order_by(Dataset.id.desc()).limit(1)
    dataset = session.scalar(statement)
    if dataset is None:
        raise NotFound("you have no dataset of this name")
    return dataset


def find_by_upload(database: Database, actor: Actor, upload_id: str) -> Dataset | None:
    """The dataset that a resumable upload has become, also when it was deleted since."""
    with database.read() as session:
        return session.scalar(select(Dataset).where(Dataset.upload_id == upload_id, Dataset.owner_id == actor.id))


def list_datasets(session: Session, actor: Actor, *, before: int | None = None, limit: int = 50) -> list[Dataset]:
    """The actor's datasets, newest first; those older than `before` when it is given."""
    statement = _own(actor).order_by(Dataset.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(Dataset.id < before)
    return list(session.scalars(statement))


def delete_dataset(session: Session, actor: Actor, dataset_id: int, now: datetime) -> Dataset:
    """Take a dataset away from its owner's view. Jobs made from it keep their chunks. Raises NotFound."""
    dataset = get_dataset(session, actor, dataset_id)
    if dataset.catalogue is not None:
        raise NotFound("the datasets of the catalogue stay")
    statement = update(Dataset).where(Dataset.id == dataset_id, Dataset.deleted_at.is_(None)).values(deleted_at=now)
    session.execute(statement, execution_options={"synchronize_session": False})
    return dataset


def _own(actor: Actor):
    return select(Dataset).where(Dataset.owner_id == actor.id, Dataset.deleted_at.is_(None))


def _scanned(path: Path) -> CsvScan:
    try:
        return scan(path)
    except CsvRefused as error:
        raise DatasetRefused(str(error)) from None
