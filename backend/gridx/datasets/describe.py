"""What all chunks of a dataset must agree on: schema.json, over the whole file, read once in pieces by pandas."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from gridx.datasets.csv_records import CsvScan

MOST_CATEGORIES: Final = 1000
MOST_CHARS: Final = 200
_ROWS_AT_ONCE: Final = 20_000
_FIELDS_AT_ONCE: Final = 4_000_000
"""A piece of a wide table has fewer rows: it must fit into memory."""


def describe(source: Path, scan: CsvScan, out: Path) -> None:
    """Writes schema.json: `{"rows": n, "columns": {name: {...}}}`.

    type: `integer`, `number`, `text`, or `empty`. missing: what pandas reads as missing. mean, std (of the population), min,
    max: of numeric columns, over finite values. categories: the distinct values in order, numbers as numbers, where there are
    at most 1000 of at most 200 characters each.
    """
    names = list(pd.read_csv(source, sep=scan.delimiter, nrows=0, encoding="utf-8-sig").columns)
    columns = [_Column() for _ in names]
    rows = max(1, min(_ROWS_AT_ONCE, _FIELDS_AT_ONCE // len(names)))
    others: set[int] = set()  # columns that pandas reads as something else than numbers, in whatever piece
    for piece in pd.read_csv(source, sep=scan.delimiter, chunksize=rows, encoding="utf-8-sig", low_memory=False):
        for place, column in enumerate(columns):
            values = piece.iloc[:, place]
            if place in others or values.dtype.kind not in "iuf":
                others.add(place)
            else:
                column.add_numbers(values.to_numpy())
    if others:
        places = sorted(others)
        for place in places:
            columns[place] = _Column()
        for piece in pd.read_csv(source, sep=scan.delimiter, dtype=str, usecols=places, chunksize=rows, encoding="utf-8-sig"):
            for number, place in enumerate(places):
                columns[place].add_texts(piece.iloc[:, number])
    told = {"rows": scan.rows, "columns": {str(name): column.tell() for name, column in zip(names, columns, strict=True)}}
    out.write_text(json.dumps(told, ensure_ascii=False, allow_nan=False), encoding="utf-8")


@dataclass(slots=True)
class _Column:
    """Running figures of one column. Means and variances of pieces are joined as Chan, Golub and LeVeque 1979 do."""

    missing: int = 0
    is_numeric: bool = True
    is_integer: bool = True
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    distinct: set[Any] | None = field(default_factory=set[Any])

    def add_numbers(self, values: Any) -> None:
        """Values of a piece that pandas read as numbers; NaN where one is missing. The quick way: no text is made of any."""
        present = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        self.missing += len(values) - len(present)
        if self.distinct is not None:
            self.distinct.update(np.unique(present).tolist())
            if len(self.distinct) > MOST_CATEGORIES:
                self.distinct = None
        if len(present):
            self._add_figures(present.astype(np.float64))

    def add_texts(self, values: pd.Series) -> None:
        present = values.dropna()
        self.missing += len(values) - len(present)
        if self.distinct is not None:
            self.distinct.update(str(value) for value in present.unique())
            if len(self.distinct) > MOST_CATEGORIES or any(len(value) > MOST_CHARS for value in self.distinct):
                self.distinct = None
        if self.is_numeric and len(present):
            self._add_figures(np.asarray(pd.to_numeric(present, errors="coerce"), dtype=np.float64))

    def _add_figures(self, numbers: Any) -> None:
        if np.isnan(numbers).any():
            self.is_numeric = False
            return
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return
        self.is_integer = self.is_integer and bool((numbers == np.rint(numbers)).all())
        with np.errstate(over="ignore", invalid="ignore"):  # figures that are not finite are not told
            mean, count = float(numbers.mean()), len(numbers)
            away, total = mean - self.mean, self.count + count
            self.squares += float(((numbers - mean) ** 2).sum()) + away * away * self.count * count / total
            self.mean += away * count / total
        self.count = total
        self.least, self.most = min(self.least, float(numbers.min())), max(self.most, float(numbers.max()))

    def tell(self) -> dict[str, Any]:
        is_number = self.is_numeric and self.count > 0
        kind = ("integer" if self.is_integer else "number") if is_number else "text" if self.distinct != set() else "empty"
        told: dict[str, Any] = {"type": kind, "missing": self.missing}
        figures = (self.mean, math.sqrt(self.squares / self.count), self.least, self.most) if is_number else ()
        if figures and all(map(math.isfinite, figures)):
            told |= dict(zip(("mean", "std", "min", "max"), figures, strict=True))
        if self.distinct:
            told["categories"] = sorted({_number(value) for value in self.distinct}) if is_number else sorted(self.distinct)
            if any(isinstance(value, float) and not math.isfinite(value) for value in told["categories"]):
                del told["categories"]
        return told


def _number(value: Any) -> int | float:
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
