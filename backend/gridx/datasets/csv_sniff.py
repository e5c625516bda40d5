"""What a file is by its first bytes: its kind, its delimiter, its column names."""

import codecs
import csv
import io
import os
from pathlib import Path
from typing import Final

BOM: Final = codecs.BOM_UTF8
DELIMITERS: Final = (",", ";", "\t", "|")
SAMPLE_BYTES: Final = 1 << 16
_SAMPLE_RECORDS = 50
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls)"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"ARROW1", "an Arrow file"),
    (b"%PDF-", "a PDF document"),
)


class CsvRefused(ValueError):
    """The file can not be dealt to chunks. `line` counts physical lines from 1, as editors do."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


def refuse_binary(sample: bytes) -> None:
    if not sample or sample == BOM:
        raise CsvRefused("the file is empty; it needs a header line and at least one record")
    name = next((name for magic, name in _MAGIC if sample.startswith(magic)), None)
    if sample.startswith(b"PK\x03\x04"):
        excel = b"xl/" in sample or b"[Content_Types].xml" in sample
        name = "an Excel workbook (.xlsx)" if excel else "a zip archive"
    if name is not None:
        raise CsvRefused(f"this is {name}, not a CSV; export its rows as a CSV in UTF-8")
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise CsvRefused("the file is UTF-32; save it as UTF-8", 1)
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _looks_utf16(sample[:512]):
        raise CsvRefused("the file is UTF-16 (Excel's 'Unicode text'); save it as 'CSV UTF-8'", 1)


def _looks_utf16(head: bytes) -> bool:
    """Latin text in UTF-16 has a NUL in every second byte."""
    half = len(head) // 2
    return half >= 4 and any(head[side::2].count(0) > 0.7 * half and head[1 - side :: 2].count(0) == 0 for side in (0, 1))


def detect_delimiter(sample: bytes, *, whole: bool) -> str:
    """The candidate that splits the first records into the same number of fields, more than one; else a comma."""
    text = sample.decode("utf-8", errors="replace")
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        counts: list[int] = []
        try:
            for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
                if record:
                    counts.append(len(record))
                if len(counts) == _SAMPLE_RECORDS:
                    break
        except csv.Error:
            continue
        if len(counts) > 1 and len(counts) < _SAMPLE_RECORDS and not whole:
            counts.pop()  # the sample cuts it
        if not counts or counts[0] < 2:
            continue
        score = (counts.count(counts[0]) / len(counts), counts[0])
        if score > best_score:
            best, best_score = delimiter, score
    return best


def read_header(path: Path, bom: int, header_end: int, delimiter: str) -> tuple[list[str], bytes]:
    """(column names, the header's line end)."""
    with path.open("rb", buffering=0) as file:
        raw = os.pread(file.fileno(), header_end - bom, bom)
    try:
        names = next(filter(None, csv.reader(io.StringIO(raw.decode(), newline=""), delimiter=delimiter)))
    except csv.Error as error:
        raise CsvRefused(f"line 1: the header can not be read ({error}); shorten its column names", 1) from None
    first = raw.lstrip(b"\r\n")
    content = first.rstrip(b"\r\n")
    tail = first[len(content) :]
    line_end = b"\r\n" if tail.startswith(b"\r\n") else tail[:1]
    return names, line_end
