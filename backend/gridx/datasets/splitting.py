"""Cuts an upload into chunk files: the original bytes of whole records, each in exactly one chunk.

Every chunk begins with the upload's header (and BOM). One pass over the source; one thread hashes and one writes, both
without the interpreter lock. Memory: the deal (at most two bytes a row) and some 70 MB at most.

`rows.map` beside the chunks gives the original order back: one line of JSON (keys as in `_MapHead`), then the chunk of
each row as little-endian unsigned numbers of `item_bytes` bytes (none when the deal is contiguous).
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gridx.datasets.chunk_writer import BUFFERS_BYTES, ChunkWriter
from gridx.datasets.csv_lexer import BLOCK_BYTES, read_blocks
from gridx.datasets.csv_records import CsvScan, line_blocks, record_blocks
from gridx.datasets.partitioners import Deal, chunk_sizes, deal, deal_with_held_out

MAP_NAME: Final = "rows.map"
_MAP_FORMAT = "gridx-rows-1"


class SourceChanged(RuntimeError):
    """The file does not hold what its scan says; scan it again."""


@dataclass(frozen=True, slots=True)
class ChunkFile:
    """One chunk: header + `rows` records; `bytes` and `sha256` (hex) are those of the whole file."""

    path: Path
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SplitResult:
    chunks: list[ChunkFile]
    map_path: Path
    map_sha256: str


@dataclass(frozen=True, slots=True)
class _MapHead:
    format: str
    partitioner: str
    seed: int
    chunks: int
    item_bytes: int
    scan: dict[str, Any]


def split(
    source: Path,
    scan: CsvScan,
    partitioner: str,
    chunks: int,
    seed: int,
    out_dir: Path,
    options: Mapping[str, Any] | None = None,
    *,
    held_out: float = 0.0,
    labels: NDArray[Any] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> SplitResult:
    """Writes `chunk-00000.csv`, ... and `rows.map` into `out_dir` (made if absent), all of them or none.

    With `held_out`, that share of the rows is drawn first and becomes one further chunk, the last of the result.
    `scan` is what `csv_records.scan` said of `source`. `labels` are read from the options' column when not given. Raises TooFewRows,
    UnknownPartitioner, Undealable, LabelsUnusable, SourceChanged, OSError.
    """
    column = (options or {}).get("column")
    if column is not None and labels is None:
        from gridx.datasets.labels import read_labels  # brings pandas, which most jobs need not wait for

        labels = read_labels(source, scan, column)
    if held_out:
        dealt = deal_with_held_out(partitioner, scan.rows, chunks, seed, options, labels, held_out)
        chunks += 1
    else:
        dealt = deal(partitioner, scan.rows, chunks, seed, options, labels)
    sizes = chunk_sizes(dealt, scan.rows, chunks)
    out_dir.mkdir(parents=True, exist_ok=True)
    with source.open("rb", buffering=0) as file:
        header = os.pread(file.fileno(), scan.header_end, 0)
    head = _MapHead(_MAP_FORMAT, partitioner, seed, chunks, 0 if dealt is None else dealt.itemsize, scan.to_json())
    with ChunkWriter(out_dir, chunks, is_busy=dealt is not None) as writer:
        for chunk in range(chunks):
            writer.put(chunk, header)
        if dealt is None:
            moved = _copy_contiguous(source, scan, sizes, writer, block_bytes)
        else:
            moved = _copy_dealt(source, scan, dealt, chunks, writer, block_bytes)
        if moved != scan.bytes - scan.header_end:
            raise SourceChanged(f"{source.name} changed after it was scanned; scan it again")
        files = writer.close()
        map_path, map_sha256 = _write_map(out_dir, head, dealt, writer)
        writer.publish()
    return SplitResult(
        chunks=[
            ChunkFile(path=path, rows=int(rows), bytes=size, sha256=sha256) for (path, size, sha256), rows in zip(files, sizes, strict=True)
        ],
        map_path=map_path,
        map_sha256=map_sha256,
    )


def restore(map_path: Path, chunk_paths: Sequence[Path], out: Path, *, block_bytes: int = BLOCK_BYTES) -> None:
    """Writes the upload that was split, byte for byte, to `out` (whole or not at all).

    `chunk_paths` in chunk order. Holds one open file per chunk when the deal is not contiguous.
    Raises ValueError when the map and the chunks do not belong together.
    """
    with map_path.open("rb") as file:
        head = _MapHead(**json.loads(file.readline()))
        if head.format != _MAP_FORMAT or head.chunks != len(chunk_paths):
            raise ValueError(f"{map_path.name} is no row map of {len(chunk_paths)} chunks")
        kind = np.dtype(f"<u{head.item_bytes}") if head.item_bytes else None
        scan = CsvScan.from_json(head.scan)
        temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("wb") as target:
                with chunk_paths[0].open("rb") as first:
                    target.write(first.read(scan.header_end))
                size = max(1, min(block_bytes, BUFFERS_BYTES // len(chunk_paths)))
                records = [_records(path, scan, size) for path in chunk_paths]
                if kind is None:
                    for source in chunk_paths:
                        target.writelines(block for block, _ in record_blocks(source, scan, block_bytes=block_bytes))
                else:
                    while raw := file.read(BLOCK_BYTES):
                        for chunk in np.frombuffer(raw, dtype=kind).tolist():
                            target.write(next(records[chunk]))
                written = target.tell()
            if written != scan.bytes:
                raise ValueError(f"the chunks hold {written} bytes of an upload of {scan.bytes}")
            temporary.replace(out)
        except StopIteration:
            raise ValueError(f"a chunk holds fewer records than {map_path.name} says") from None
        finally:
            temporary.unlink(missing_ok=True)


def _records(path: Path, scan: CsvScan, block_bytes: int) -> Iterator[bytes]:
    for block, starts in record_blocks(path, scan, block_bytes=block_bytes):
        yield from _slices(block, starts)


def _slices(block: bytes, starts: NDArray[np.int64]) -> list[bytes]:
    return [block[a:b] for a, b in pairwise([*starts.tolist(), len(block)])]


def _copy_dealt(source: Path, scan: CsvScan, dealt: Deal, chunks: int, writer: ChunkWriter, block_bytes: int) -> int:
    """Sends each record to its chunk; returns the bytes moved."""
    row = 0
    moved = 0
    for block, records in _record_lists(source, scan, block_bytes):
        labels = dealt[row : row + len(records)]
        if len(labels) != len(records):
            raise SourceChanged(f"{source.name} holds more records than its scan says; scan it again")
        order = np.argsort(labels, kind="stable").tolist()
        counts = np.bincount(labels, minlength=chunks)
        begin = 0
        take = records.__getitem__
        for chunk in np.flatnonzero(counts).tolist():
            end = begin + int(counts[chunk])
            writer.put(chunk, b"".join(map(take, order[begin:end])))
            begin = end
        row += len(records)
        moved += len(block)
    if row != scan.rows:
        raise SourceChanged(f"{source.name} holds fewer records than its scan says; scan it again")
    return moved


def _record_lists(source: Path, scan: CsvScan, block_bytes: int) -> Iterator[tuple[bytes, list[bytes]]]:
    if scan.plain:  # lines are records, and splitlines is the fastest way to have them
        for block in line_blocks(source, scan, block_bytes=block_bytes):
            yield block, block.splitlines(keepends=True)
    else:
        for block, starts in record_blocks(source, scan, block_bytes=block_bytes):
            yield block, _slices(block, starts)


def _copy_contiguous(source: Path, scan: CsvScan, sizes: NDArray[np.int64], writer: ChunkWriter, block_bytes: int) -> int:
    """Sends consecutive records to consecutive chunks; returns the bytes moved."""
    moved = chunk = 0
    left = int(sizes[0])
    for block, count, ends in _counted_blocks(source, scan, block_bytes):
        at = 0  # bytes of this block already sent
        done = 0
        while count - done >= left and chunk + 1 < len(sizes):
            done += left
            cut = int(ends()[done - 1])
            writer.put(chunk, block[at:cut])
            at = cut
            chunk += 1
            left = int(sizes[chunk])
        left -= count - done
        if at < len(block):
            writer.put(chunk, block[at:] if at else block)
        moved += len(block)
    if left != 0 or chunk + 1 != len(sizes):
        raise SourceChanged(f"{source.name} does not hold the records its scan says; scan it again")
    return moved


def _counted_blocks(source: Path, scan: CsvScan, block_bytes: int) -> Iterator[tuple[bytes, int, Callable[[], NDArray[np.int64]]]]:
    """(block, how many records end in it, where each of them ends). Where lines are records, counting is all that most blocks need."""
    if not scan.plain:
        for block, starts in record_blocks(source, scan, block_bytes=block_bytes):
            yield block, len(starts), lambda starts=starts, block=block: np.append(starts[1:], len(block))
        return
    newline = scan.line_end[-1]
    last = newline
    for block in read_blocks(source, scan.header_end, block_bytes):
        is_end = np.frombuffer(block, dtype=np.uint8) == newline
        yield block, int(np.count_nonzero(is_end)), lambda is_end=is_end: np.flatnonzero(is_end) + 1
        last = block[-1]
    if last != newline:
        yield b"", 1, lambda: np.zeros(1, dtype=np.int64)


def _write_map(out_dir: Path, head: _MapHead, dealt: Deal | None, writer: ChunkWriter) -> tuple[Path, str]:
    path = out_dir / MAP_NAME
    hasher = hashlib.sha256()
    with writer.temporary(path).open("wb") as file:
        first = json.dumps(asdict(head)).encode() + b"\n"
        hasher.update(first)
        file.write(first)
        if dealt is not None:
            for start in range(0, len(dealt), 1 << 20):
                part = dealt[start : start + (1 << 20)].astype(f"<u{head.item_bytes}").tobytes()
                hasher.update(part)
                file.write(part)
    return path, hasher.hexdigest()
