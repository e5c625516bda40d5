"""How a choice of chunks and partitioner would deal a dataset's rows, and in words where it would hurt."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gridx.datasets.column import TooManyValues, read_column
from gridx.datasets.csv_records import CsvScan
from gridx.datasets.partitioners import Undealable, chunk_sizes, deal

MOST_BYTES: Final = 512 * 1024**2
"""Of larger files only the sizes of chunks are told: reading one would keep the caller waiting."""
MOST_LABELS: Final = 50
_ON_PURPOSE: Final = ("dirichlet", "shards", "by_column")
_FEW_ROWS: Final = 5
"""Of a class in a chunk, on average: with fewer, `iid` leaves some chunks without it."""
_FAR: Final = 0.3
"""Total variation distance of a chunk's classes to those of all rows."""
_NAMED: Final = 5


@dataclass(frozen=True)
class Dealt:
    """`labels`: the classes, in order; `counts`: rows of each class in each chunk, shape (chunks, labels); None without classes."""

    sizes: list[int]
    labels: list[str] = field(default_factory=list[str])
    counts: list[list[int]] | None = None
    warnings: list[str] = field(default_factory=list[str])
    proposed: str | None = None


def preview_deal(
    source: Path, scan: CsvScan, partitioner: str, chunks: int, seed: int, options: dict[str, Any], column: str | None
) -> Dealt:
    """Deal as a job with this seed would, and count. `column` holds the classes; options name the same one where there is one.

    Raises TooFewRows, UnknownPartitioner, Undealable, with words for the buyer.
    """
    names, codes = [], None
    if column is not None:
        try:
            names, codes = read_column(source, scan, column)
        except TooManyValues as error:
            if "column" in options:
                raise Undealable(str(error)) from None
    dealt = deal(partitioner, scan.rows, chunks, seed, options, codes if "column" in options else None)
    sizes = chunk_sizes(dealt, scan.rows, chunks)
    warnings = _uneven(sizes)
    if codes is None or len(names) > MOST_LABELS:
        many = [f"column {column!r} holds many different values, so it is taken for no class"] if column is not None else []
        return Dealt(sizes.tolist(), warnings=warnings + many)
    owners = np.repeat(np.arange(chunks), sizes) if dealt is None else dealt.astype(np.int64)
    counts = np.bincount(owners * len(names) + codes, minlength=chunks * len(names)).reshape(chunks, len(names))
    about, proposed = _classes(counts, names, partitioner, column or "")
    if partitioner == "contiguous" and _is_sorted(codes, len(names)):
        about.insert(
            0, f"the file is sorted by {column!r}: cut in order, each chunk sees other classes, and averaging such models learns badly"
        )
        proposed = "stratified"
    return Dealt(sizes.tolist(), names, counts.tolist(), warnings + about, proposed)


def _classes(counts: NDArray[np.int64], names: list[str], partitioner: str, column: str) -> tuple[list[str], str | None]:
    chunks = len(counts)
    totals, missing = counts.sum(axis=0), (counts == 0).sum(axis=0)
    words: list[str] = []
    proposed: str | None = None
    for place in np.argsort(totals, kind="stable").tolist():
        name, total = _shown(names[place]), int(totals[place])
        if total < chunks:
            words.append(
                f"class {name} has {_rows(total)}, fewer than the {chunks} chunks: some chunks cannot have it. Ask for fewer chunks"
            )
        elif missing[place] and partitioner in _ON_PURPOSE:
            words.append(f"class {name} is missing from {missing[place]} of {chunks} chunks, as {partitioner} deals them")
        elif missing[place] or (partitioner in ("iid", "sizes") and total < _FEW_ROWS * chunks):
            what = f"is missing from {missing[place]} of {chunks} chunks" if missing[place] else "is rare"
            words.append(
                f"class {name} {what} ({_rows(total)} in all): the partitioner stratified by {column!r} gives every chunk its share"
            )
            proposed = "stratified"
    if len(words) > _NAMED:
        words = [*words[:_NAMED], f"and {len(words) - _NAMED} more classes like these"]
    far = _far_chunks(counts) if partitioner not in _ON_PURPOSE else []
    if far and proposed is None and chunks > 1:
        words.append(f"the classes of {_chunks(far)} differ much from those of all rows; stratified by {column!r} evens them out")
        proposed = "stratified"
    return words, proposed


def _far_chunks(counts: NDArray[np.int64]) -> list[int]:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    overall = counts.sum(axis=0) / counts.sum()
    return np.flatnonzero(np.abs(shares - overall).sum(axis=1) / 2 > _FAR).tolist()


def _is_sorted(codes: NDArray[np.int32], distinct: int) -> bool:
    """Whether each class's rows stand nearly together."""
    changes = int(np.count_nonzero(np.diff(codes)))
    return distinct > 1 and changes < max(2 * distinct, len(codes) // 100)


def _uneven(sizes: NDArray[np.int64]) -> list[str]:
    least, most = int(sizes.argmin()), int(sizes.argmax())
    if sizes[most] < 10 * sizes[least]:
        return []
    return [f"chunk {least} has {_rows(int(sizes[least]))} and chunk {most} has {_rows(int(sizes[most]))}: the small one will count little"]


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _chunks(places: list[int]) -> str:
    shown = ", ".join(map(str, places[:_NAMED]))
    return f"chunk{'s' * (len(places) != 1)} {shown}{' and others' * (len(places) > _NAMED)}"


def _shown(value: str) -> str:
    return repr(value[:40]) if value else "(empty)"
