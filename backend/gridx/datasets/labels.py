"""The values of one column, as numbers. pandas reads the column it is asked for, and never the bytes of a chunk."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridx.datasets.csv_records import CsvScan


class LabelsUnusable(ValueError):
    """The column cannot be read as the partitioner needs it."""


def read_labels(source: Path, scan: CsvScan, column: str) -> NDArray[np.int32]:
    """Shape (rows,): each row's value as its place among the column's sorted values, numbers by size where all are numbers.

    Raises LabelsUnusable. Memory: four bytes a row, and the distinct values.
    """
    if column not in scan.columns:
        raise LabelsUnusable(f"there is no column {column!r}; there are: {', '.join(scan.columns[:50])}")
    place = scan.columns.index(column)
    frame = pd.read_csv(
        source,
        sep=scan.delimiter,
        usecols=[place],
        header=0,
        dtype="category",
        keep_default_na=False,
        na_filter=False,
        encoding="utf-8-sig",
    )
    values = frame.iloc[:, 0]
    if len(values) != scan.rows:
        raise LabelsUnusable(f"column {column!r} has {len(values)} values for {scan.rows} rows")
    names = [str(name) for name in values.cat.categories]
    numbers = np.array([_number(name) for name in names])
    order = np.argsort(np.array(names) if np.isnan(numbers).any() else numbers, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[np.asarray(values.cat.codes, dtype=np.int64)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
