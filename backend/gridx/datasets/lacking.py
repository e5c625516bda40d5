"""Which values of a column a chunk has no row of: what a script that counts classes on its own chunk would stumble over."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

MOST_BYTES: Final = 64 * 1024**2
"""Of larger datasets this is not looked for."""
_MOST_CLASSES: Final = 50
_MOST_COLUMNS: Final = 20
_MOST_NAMED: Final = 10


def lacking(schema: Path, chunks: Sequence[Path], delimiter: str) -> list[dict[str, list[Any]]]:
    """For each chunk: by column, the categories in schema.json that it lacks (at most 10), where it lacks any.

    Of the last 20 columns with 2 to 50 categories; the label usually stands last.
    """
    columns: dict[str, dict[str, Any]] = json.loads(schema.read_text(encoding="utf-8"))["columns"]
    few = {name: column["categories"] for name, column in columns.items() if 2 <= len(column.get("categories", ())) <= _MOST_CLASSES}
    few = dict([(name, values) for name, values in few.items() if columns[name]["type"] in ("text", "integer")][-_MOST_COLUMNS:])
    if not few:
        return [{} for _ in chunks]
    texts: dict[Any, Any] = {name: str for name in few if columns[name]["type"] == "text"}
    found: list[dict[str, list[Any]]] = []
    for path in chunks:
        frame = pd.read_csv(path, sep=delimiter, usecols=list(few), dtype=texts, encoding="utf-8-sig")
        missing = {name: [value for value in values if value not in set(frame[name].dropna().tolist())] for name, values in few.items()}
        found.append({name: values[:_MOST_NAMED] for name, values in missing.items() if values})
    return found
