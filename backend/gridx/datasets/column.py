"""The values of one column without pandas, for the web process. The figures of jobs themselves come from `labels.py`."""

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridx.datasets.csv_records import CsvScan, record_blocks

MOST_VALUES = 1_000_000


class TooManyValues(ValueError):
    """The column holds more different values than are counted here."""


def read_column(source: Path, scan: CsvScan, column: str) -> tuple[list[str], NDArray[np.int32]]:
    """The column's different values in order, numbers by size where all are numbers; and each row's place among them, shape (rows,).

    The places are those of `labels.read_labels`. Memory: four bytes a row, and the values. Raises TooManyValues.
    """
    found: dict[str, int] = {}
    codes = np.empty(scan.rows, dtype=np.int32)
    row = 0
    for values in _values(source, scan, scan.columns.index(column)):
        for value in values:
            codes[row] = found.setdefault(value, len(found))
            row += 1
        if len(found) > MOST_VALUES:
            raise TooManyValues(f"column {column!r} holds more than {MOST_VALUES} different values")
    names = list(found)
    numbers = np.array([_number(name) for name in names])
    order = np.argsort(np.array(names) if np.isnan(numbers).any() else numbers, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return [names[place] for place in order.tolist()], rank[codes[:row]]


def _values(source: Path, scan: CsvScan, place: int) -> Iterator[list[str]]:
    """The column's values, block by block. Where a block has neither quotes nor blank lines, NumPy finds the fields."""
    width, delimiter = len(scan.columns), ord(scan.delimiter)
    for block, starts in record_blocks(source, scan):
        if b'"' not in block and b"\r" not in block:
            data = np.frombuffer(block, dtype=np.uint8)
            ends = np.flatnonzero((data == delimiter) | (data == 10))
            if not block.endswith(b"\n"):
                ends = np.append(ends, len(data))
            if len(ends) == width * len(starts):
                stop = ends[place::width].tolist()
                begin = starts.tolist() if place == 0 else (ends[place - 1 :: width] + 1).tolist()
                yield [block[a:b].decode() for a, b in zip(begin, stop, strict=True)]
                continue
        text = io.StringIO(block.decode(), newline="")
        yield [record[place] for record in csv.reader(text, delimiter=scan.delimiter) if record]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
