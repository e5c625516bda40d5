"""A dataset's first records, read from its first bytes alone."""

import csv
import io

from gridx.datasets.models import Dataset
from gridx.storage.base import ObjectStore

MOST_ROWS = 20
_HEAD_BYTES = 64 * 1024


def first_rows(store: ObjectStore, dataset: Dataset, most: int) -> list[list[str]]:
    """At most `most` records after the header; fewer when they are longer than 64 KiB together. Raises ObjectMissing."""
    with store.open(dataset.object_key) as file:
        file.read(dataset.header_end)
        head = file.read(_HEAD_BYTES)
    is_whole = dataset.header_end + len(head) >= dataset.bytes
    text = head.decode(errors="replace")  # only the cut can break a character, and the record there is left out
    records = [record for record in csv.reader(io.StringIO(text, newline=""), delimiter=dataset.delimiter) if record]
    return (records if is_whole else records[:-1])[:most]
