"""Which row goes to which chunk. Pure, seeded, and small: at most two bytes of memory a row.

A partitioner deals rows, it never reorders them: within a chunk the records keep the upload's order. That is what
makes the row map one small number a row, and what lets a split run in one pass.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

MAX_CHUNKS: Final = 1 << 16

Deal = NDArray[np.uint8 | np.uint16]


class TooFewRows(ValueError):
    """There are fewer rows than chunks, so that some chunk would be empty."""

    def __init__(self, rows: int, chunks: int) -> None:
        self.rows = rows
        self.chunks = chunks
        super().__init__(f"{rows} row{'s' * (rows != 1)} can not be dealt to {chunks} chunks; ask for {rows} chunks or fewer")


class UnknownPartitioner(ValueError):
    """No partitioner has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no partitioner is called {name!r}; there are: {', '.join(sorted(PARTITIONERS))}")


class Partitioner(Protocol):
    """Deals `rows` rows to `chunks` chunks.

    Returns the chunk of each row, shape (rows,), uint8 up to 256 chunks and uint16 above; or None for the contiguous
    deal of `contiguous_sizes`, which needs no array. The same arguments give the same deal. `labels` holds the values
    of the column a partitioner asks for, shape (rows,), when its options name one.
    """

    def __call__(self, rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None: ...


def deal(
    partitioner: str,
    rows: int,
    chunks: int,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    labels: NDArray[Any] | None = None,
) -> Deal | None:
    """The chunk of each row as `Partitioner` says; raises TooFewRows, UnknownPartitioner, ValueError for bad counts."""
    if partitioner not in PARTITIONERS:
        raise UnknownPartitioner(partitioner)
    if not 1 <= chunks <= MAX_CHUNKS:
        raise ValueError(f"the number of chunks must lie between 1 and {MAX_CHUNKS}, not {chunks}")
    if rows < chunks:
        raise TooFewRows(rows, chunks)
    return PARTITIONERS[partitioner](rows, chunks, seed, options or {}, labels)


def contiguous_sizes(rows: int, chunks: int) -> NDArray[np.int64]:
    """Rows per chunk, shape (chunks,): the first `rows mod chunks` chunks get one row more."""
    sizes = np.full(chunks, rows // chunks, dtype=np.int64)
    sizes[: rows % chunks] += 1
    return sizes


def chunk_sizes(dealt: Deal | None, rows: int, chunks: int) -> NDArray[np.int64]:
    """Rows per chunk, shape (chunks,), of what `deal` returned; memory does not grow with the rows."""
    if dealt is None:
        return contiguous_sizes(rows, chunks)
    sizes = np.zeros(chunks, dtype=np.int64)
    step = 1 << 20
    for start in range(0, rows, step):
        sizes += np.bincount(dealt[start : start + step], minlength=chunks)
    return sizes


def _contiguous(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """Consecutive rows, as the seed systems cut them."""
    return None


def _iid(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """A seeded shuffle of balanced chunk numbers: each chunk is a uniform sample, sizes as in `contiguous`."""
    kind = np.uint8 if chunks <= 256 else np.uint16
    dealt = np.repeat(np.arange(chunks, dtype=kind), contiguous_sizes(rows, chunks))
    np.random.Generator(np.random.PCG64(seed)).shuffle(dealt)
    return dealt


PARTITIONERS: dict[str, Partitioner] = {
    "iid": _iid,
    "contiguous": _contiguous,
}
