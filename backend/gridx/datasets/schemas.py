"""Bodies of the /datasets routes."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gridx.core.text import MAX_ID, Text

DatasetName = Annotated[Text, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class DatasetOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    rows: int
    columns: list[str]
    delimiter: str
    bytes: int
    sha256: str
    warnings: list[str]
    created_at: datetime


class DatasetList(BaseModel):
    items: list[DatasetOut]
    next: int | None
    """Pass as `before` to read on; null at the end."""


class ChunkPreview(BaseModel):
    chunk: int
    rows: int
    labels: list[int] | None
    """Rows of each label, in the order of the deal's `labels`."""


class DealPreview(BaseModel):
    """How these choices would deal the rows; with the seed of a job, exactly as that job will."""

    labels: list[str]
    """The classes, in order; empty where no column was named, or it holds none."""
    chunks: list[ChunkPreview]
    warnings: list[str]
    proposed: str | None
    """A partitioner that would do better."""


class DatasetPreview(BaseModel):
    """The first records, as texts. Records may be longer or shorter than the header where the file's are."""

    columns: list[str]
    rows: list[list[str]]
    deal: DealPreview | None = None


class UploadIn(BaseModel):
    name: DatasetName
    bytes: Annotated[int, Field(ge=1, le=MAX_ID)]
    """Size of the whole file."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Compared with what arrived, when given."""


class UploadOut(BaseModel):
    """A resumable upload. `offset` is how many bytes have arrived; `dataset` stands there once all have."""

    upload_id: str
    offset: int
    bytes: int
    dataset: DatasetOut | None = None
