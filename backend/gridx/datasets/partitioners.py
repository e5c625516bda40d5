"""Which row goes to which chunk. Pure, seeded, and small: at most two bytes of memory a row.

A partitioner deals rows, it never reorders them: within a chunk the records keep the upload's order. That is what
makes the row map one small number a row, and what lets a split run in one pass.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

MAX_CHUNKS: Final = 1 << 16
_TRIES: Final = 100
_HELD_OUT: Final = 0x48454C44
"""Keeps the draw of held-out rows apart from the partitioners' own draws of the same seed."""

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


class Undealable(ValueError):
    """These rows can not be dealt in the way that was asked for; the message says why, and what to change."""


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
    """The chunk of each row as `Partitioner` says; raises TooFewRows, UnknownPartitioner, Undealable, ValueError for bad counts."""
    if partitioner not in PARTITIONERS:
        raise UnknownPartitioner(partitioner)
    if not 1 <= chunks <= MAX_CHUNKS:
        raise ValueError(f"the number of chunks must lie between 1 and {MAX_CHUNKS}, not {chunks}")
    if rows < chunks:
        raise TooFewRows(rows, chunks)
    return PARTITIONERS[partitioner](rows, chunks, seed, options or {}, labels)


def held_out_rows(rows: int, share: float) -> int:
    """How many rows a share of them is: at least one."""
    return max(1, round(rows * share))


def deal_with_held_out(
    partitioner: str,
    rows: int,
    chunks: int,
    seed: int,
    options: Mapping[str, Any] | None,
    labels: NDArray[Any] | None,
    share: float,
) -> Deal:
    """As `deal`, after a uniform sample of `share` of the rows was set aside as chunk number `chunks`. Raises as `deal` does."""
    held = held_out_rows(rows, share)
    if rows - held < chunks:
        raise TooFewRows(rows - held, chunks)
    drawn = np.random.Generator(np.random.PCG64([seed, _HELD_OUT]))
    is_held = np.zeros(rows, dtype=np.bool_)
    is_held[drawn.permutation(rows)[:held]] = True
    rest = ~is_held
    dealt = deal(partitioner, rows - held, chunks, seed, options, None if labels is None else labels[rest])
    if dealt is not None and not np.bincount(dealt, minlength=chunks).all():
        raise Undealable("all rows of one chunk fell among the held-out ones; hold out fewer")
    full = np.full(rows, chunks, dtype=_kind(chunks + 1))
    full[rest] = np.repeat(np.arange(chunks), contiguous_sizes(rows - held, chunks)) if dealt is None else dealt
    return full


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
    return _shuffled(contiguous_sizes(rows, chunks), seed)


def _stratified(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """Each value's rows are shuffled and dealt in turn, so that every chunk has its share of each, give or take a row."""
    drawn, values = _random(seed), _needed(labels)
    order = drawn.permutation(rows)
    order = order[np.argsort(values[order], kind="stable")]
    dealt = np.empty(rows, dtype=_kind(chunks))
    dealt[order] = np.arange(rows) % chunks
    return dealt


def _dirichlet(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """Each value's rows go to the chunks in proportions drawn from Dirichlet(alpha), Hsu et al. 2019; drawn anew while a chunk is empty."""
    drawn, values = _random(seed), _needed(labels)
    order = np.argsort(values, kind="stable")
    borders = np.flatnonzero(np.diff(values[order])) + 1
    dealt = np.empty(rows, dtype=_kind(chunks))
    for _ in range(_TRIES):
        for places in np.split(order, borders):
            shares = drawn.dirichlet(np.full(chunks, float(options["alpha"])))
            cuts = np.round(np.cumsum(shares)[:-1] * len(places)).astype(np.int64)
            dealt[drawn.permutation(places)] = np.searchsorted(cuts, np.arange(len(places)), side="right")
        if np.bincount(dealt, minlength=chunks).all():
            return dealt
    raise Undealable(
        f"with alpha {options['alpha']:g}, {chunks} chunks always left one without a row; raise alpha, or ask for fewer chunks"
    )


def _shards(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """The rows sorted by value are cut into equal shards, and each chunk is dealt some of them: McMahan et al. 2017, section 3."""
    drawn, values, each = _random(seed), _needed(labels), int(options["shards_per_chunk"])
    if rows < chunks * each:
        raise Undealable(f"{rows} rows can not be cut into {chunks} x {each} shards; ask for fewer of either")
    owners = drawn.permutation(np.repeat(np.arange(chunks, dtype=_kind(chunks)), each))
    dealt = np.empty(rows, dtype=_kind(chunks))
    dealt[np.argsort(values, kind="stable")] = np.repeat(owners, contiguous_sizes(rows, chunks * each))
    return dealt


def _by_column(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """One value of the column for each chunk, in the order of the values: a hospital, a user, a year."""
    values = _needed(labels)
    count = int(values.max()) + 1
    if count != chunks:
        raise Undealable(f"the column {options['column']!r} holds {count} different values; by_column needs as many chunks, not {chunks}")
    return values.astype(_kind(chunks))


def _sizes(rows: int, chunks: int, seed: int, options: Mapping[str, Any], labels: NDArray[Any] | None) -> Deal | None:
    """As `iid`, with the sizes in the proportions that were asked for."""
    shares = np.array(options["proportions"], dtype=np.float64)
    borders = np.round(np.cumsum(shares) / shares.sum() * rows).astype(np.int64)
    counts = np.diff(borders, prepend=0)
    if not counts.all():
        raise Undealable(f"the proportions leave chunk {int(np.argmin(counts))} without a single one of the {rows} rows")
    return _shuffled(counts, seed)


def _shuffled(counts: NDArray[np.int64], seed: int) -> Deal:
    """Each chunk's number as often as it gets rows, in random order."""
    dealt = np.repeat(np.arange(len(counts), dtype=_kind(len(counts))), counts)
    _random(seed).shuffle(dealt)
    return dealt


def _random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _kind(chunks: int) -> type[np.uint8 | np.uint16]:
    return np.uint8 if chunks <= 256 else np.uint16


def _needed(labels: NDArray[Any] | None) -> NDArray[Any]:
    if labels is None:
        raise ValueError("this partitioner needs the values of a column")
    return labels


PARTITIONERS: dict[str, Partitioner] = {
    "iid": _iid,
    "contiguous": _contiguous,
    "stratified": _stratified,
    "dirichlet": _dirichlet,
    "shards": _shards,
    "by_column": _by_column,
    "sizes": _sizes,
}
