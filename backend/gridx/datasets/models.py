"""Uploaded rows, and the pieces they were dealt to."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base


class Dataset(Base):
    """A CSV, stored byte for byte. A deleted one keeps its row while jobs refer to it."""

    __tablename__ = "datasets"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    """None: the server offers it to everybody, see `catalogue.py`."""
    catalogue: Mapped[str | None] = mapped_column(String(32), unique=True, default=None)
    name: Mapped[str] = mapped_column(String(200))
    """As the buyer calls it; never a path."""
    rows: Mapped[int]
    """Records without the header."""
    columns: Mapped[list[str]] = mapped_column(JSON)
    delimiter: Mapped[str] = mapped_column(String(1))
    bytes: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(String(200), unique=True)
    header_end: Mapped[int]
    """Bytes of the header with its line end and, before it, the BOM."""
    scan: Mapped[dict[str, Any]] = mapped_column(JSON)
    """All that `csv_records.scan` found, for `CsvScan.from_json`."""
    warnings: Mapped[list[str]] = mapped_column(JSON)
    upload_id: Mapped[str | None] = mapped_column(String(32), unique=True, default=None)
    """The resumable upload that it came from, so that finishing one twice makes one dataset."""
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None] = mapped_column(default=None)


class Chunk(Base):
    """The rows of a dataset that one subtask of a job trains on: a file of header and records."""

    __tablename__ = "chunks"
    __table_args__ = (UniqueConstraint("job_id", "index"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    index: Mapped[int]
    rows: Mapped[int]
    bytes: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(String(200))
    lacks: Mapped[dict[str, list[Any]] | None] = mapped_column(JSON, default=None)
    """By column, the values that no row of this chunk has and others have; None where it was not looked for."""
