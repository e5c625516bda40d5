"""What a CSV file holds and where its records begin, read once, in bounded memory, changing nothing.

Records are those of Python's `csv` module (RFC 4180 with its leniency, see `csv_lexer`). A line without a single byte
of content is no record, as for `csv` and pandas; its bytes belong to the record before it, or to the header, so that
header + records is the file byte for byte. A record's extent includes its line end.
"""

import codecs
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gridx.datasets.csv_lexer import BLOCK_BYTES, LineLexer, Lines, Positions, count_line_ends, read_blocks
from gridx.datasets.csv_sniff import BOM, SAMPLE_BYTES, CsvRefused, detect_delimiter, read_header, refuse_binary

__all__ = ["CsvRefused", "CsvScan", "line_blocks", "record_blocks", "scan"]

MAX_RECORD_BYTES: Final = 16 << 20
LineEnd = bytes
_LINE_END_NAMES = {b"\n": "LF", b"\r\n": "CRLF", b"\r": "CR"}


@dataclass(frozen=True, slots=True)
class CsvScan:
    """What `scan` found. `rows` are records without the header; the header with BOM is `[0, header_end)`.

    plain: every line end in the file ends a record and all are `line_end`, so that lines are records.
    """

    delimiter: str
    columns: list[str]
    rows: int
    bytes: int
    header_end: int
    has_bom: bool
    ends_with_newline: bool
    line_end: LineEnd
    plain: bool = False
    warnings: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON values; `line_end` becomes LF, CRLF or CR."""
        return asdict(self) | {"line_end": _LINE_END_NAMES[self.line_end]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "CsvScan":
        """The inverse of `to_json`."""
        line_ends = {name: line_end for line_end, name in _LINE_END_NAMES.items()}
        fields: dict[str, Any] = {**value, "line_end": line_ends[value["line_end"]]}
        return cls(**fields)


def scan(path: Path, *, block_bytes: int = BLOCK_BYTES, max_record_bytes: int = MAX_RECORD_BYTES) -> CsvScan:
    """Reads the whole file once and says what it holds; raises CsvRefused, naming the line, when it is no usable CSV.

    Memory: some tens of times `block_bytes`, whatever the file's size; the header adds at most one record.
    """
    with path.open("rb") as file:
        sample = file.read(SAMPLE_BYTES)
    refuse_binary(sample)
    bom = len(BOM) if sample.startswith(BOM) else 0
    delimiter = detect_delimiter(sample[bom:], whole=len(sample) < SAMPLE_BYTES)
    reading = _Reading(LineLexer(ord(delimiter)), offset=bom, max_record_bytes=max_record_bytes)
    last = b""
    for block in read_blocks(path, bom, block_bytes):
        reading.take(block)
        last = block
    return reading.finish(path, delimiter, last, bom)


def record_blocks(path: Path, scan: CsvScan, *, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, Positions]]:
    """The records in order as (whole records' bytes, offset in them at which each begins, int64, first one 0).

    The blocks joined are the file from `scan.header_end` on; a record ends where the next begins. One block holds
    about `block_bytes`, more only when a single record does.
    """
    if scan.plain:
        newline = scan.line_end[-1]
        for block in line_blocks(path, scan, block_bytes=block_bytes):
            ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == newline) + 1
            starts = np.zeros(len(ends) + (not block.endswith(scan.line_end[-1:])), dtype=np.int64)
            starts[1:] = ends[: len(starts) - 1]
            yield block, starts
        return
    lexer = LineLexer(ord(scan.delimiter))
    carried: list[bytes] = []
    carried_bytes = 0
    pending: Positions = np.empty(0, dtype=np.int64)
    for block in read_blocks(path, scan.header_end, block_bytes):
        starts = lexer.feed(block).starts + carried_bytes
        starts = np.concatenate((pending, starts))
        carried.append(block)
        carried_bytes += len(block)
        if len(starts) < 2:
            pending = starts
            continue
        joined = b"".join(carried)
        cut = int(starts[-1])
        yield joined[:cut], starts[:-1]
        carried = [joined[cut:]]
        carried_bytes = len(joined) - cut
        pending = np.zeros(1, dtype=np.int64)
    if carried_bytes:
        yield b"".join(carried), pending


def line_blocks(path: Path, scan: CsvScan, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The records of a `plain` file in blocks that end where a record ends; joined: the file from `header_end` on."""
    newline = scan.line_end[-1:]
    carried: list[bytes] = []
    for block in read_blocks(path, scan.header_end, block_bytes):
        cut = block.rfind(newline) + 1
        if not cut:
            carried.append(block)
            continue
        yield b"".join([*carried, block[:cut]]) if carried else block[:cut]
        carried = [block[cut:]] if cut < len(block) else []
    if carried:
        yield b"".join(carried)


@dataclass(slots=True)
class _Reading:
    """The running state of one `scan`."""

    lexer: LineLexer
    offset: int  # of the next block in the file
    max_record_bytes: int
    decoder: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))
    decoding: bool = False  # the decoder holds the first bytes of a character
    expected: int | None = None  # fields of the header
    starts: int = 0  # of header and records
    header_end: int | None = None
    record_start: int = 0
    record_line: int = 1
    blank_lines: int = 0

    def take(self, block: bytes) -> None:
        """Checks one block; raises CsvRefused."""
        before = self.lexer.lines
        self._check_text(block, before)
        open_line = before + 1 if self.lexer.at_line_start else self.record_line
        lines = self.lexer.feed(block)
        self._check_fields(block, lines, open_line)
        self._check_sizes(block, lines.starts)
        self.offset += len(block)

    def finish(self, path: Path, delimiter: str, last: bytes, bom: int) -> CsvScan:
        """Checks the end of the file and sums up; raises CsvRefused."""
        lexer = self.lexer
        if self.decoding:
            raise _not_utf8(lexer.lines + 1)
        if lexer.in_quotes:
            line = lexer.quote_line
            raise CsvRefused(f"line {line}: a quote opens here and is never closed; close it, or double it if it is data", line)
        if self.starts == 0:
            raise CsvRefused("the file holds blank lines only; it needs a header line and at least one record")
        fields = lexer.open_fields + 1
        if not lexer.at_line_start and self.expected is not None and fields != self.expected:
            raise _ragged(self.record_line, fields, self.expected)
        if self.starts == 1 or self.header_end is None:
            raise CsvRefused("the file holds a header and no records; add the rows to train on")
        columns, line_end = read_header(path, bom, self.header_end, delimiter)
        kinds = [n for n in (lexer.lf, lexer.crlf, lexer.cr) if n]
        ends_with_newline = last.endswith((b"\n", b"\r"))
        plain = lexer.lines == lexer.ended and self.blank_lines == 0 and len(kinds) == 1
        return CsvScan(
            delimiter=delimiter,
            columns=columns,
            rows=self.starts - 1,
            bytes=self.offset,
            header_end=self.header_end,
            has_bom=bom > 0,
            ends_with_newline=ends_with_newline,
            line_end=line_end,
            plain=plain,
            warnings=_warnings(self, columns, len(kinds) > 1),
        )

    def _check_text(self, block: bytes, lines_before: int) -> None:
        nul = block.find(b"\x00")
        if nul >= 0:
            line = lines_before + count_line_ends(block[:nul]) + 1
            raise CsvRefused(f"line {line}: a NUL byte; the file is binary or damaged, export it again as UTF-8", line)
        if block.isascii() and not self.decoding:
            return
        try:
            self.decoder.decode(block)
        except UnicodeDecodeError as error:
            # The decoder may have put up to three bytes of the block before in front.
            at = max(error.start - (len(error.object) - len(block)), 0)
            raise _not_utf8(lines_before + count_line_ends(block[:at]) + 1) from None
        self.decoding = bool(self.decoder.getstate()[0])

    def _check_fields(self, block: bytes, lines: Lines, open_line: int) -> None:
        if len(lines.fields) == 0:
            return
        self.blank_lines += int(np.count_nonzero(lines.blank))
        if self.expected is None:
            content = np.flatnonzero(~lines.blank)
            if len(content) == 0:
                return
            self.expected = int(lines.fields[content[0]])
        bad = (lines.fields != self.expected) & ~lines.blank
        if not bad.any():
            return
        first = int(np.argmax(bad))
        line = open_line if first == 0 else self.lexer.line_at(block, int(lines.ends[first - 1]))
        raise _ragged(line, int(lines.fields[first]), self.expected)

    def _check_sizes(self, block: bytes, starts: Positions) -> None:
        if len(starts) == 0:
            if self.starts and self.offset + len(block) - self.record_start > self.max_record_bytes:
                raise self._too_large()
            return
        absolute = starts + self.offset
        if self.starts:
            if int(absolute[0]) - self.record_start > self.max_record_bytes:
                raise self._too_large()
            if self.starts == 1:
                self.header_end = int(absolute[0])
        if self.header_end is None and len(absolute) > 1:
            self.header_end = int(absolute[1])
        if len(block) > self.max_record_bytes:
            self._check_within(block, starts)
        self.starts += len(starts)
        self.record_start = int(absolute[-1])
        self.record_line = self.lexer.line_at(block, int(starts[-1]))

    def _check_within(self, block: bytes, starts: Positions) -> None:
        sizes = np.diff(starts, append=len(block))
        large = np.flatnonzero(sizes > self.max_record_bytes)
        if len(large):
            self.record_line = self.lexer.line_at(block, int(starts[large[0]]))
            raise self._too_large()

    def _too_large(self) -> CsvRefused:
        megabytes = self.max_record_bytes / (1 << 20)
        line = self.record_line
        if self.lexer.in_quotes:
            line = self.lexer.quote_line
            return CsvRefused(
                f"line {line}: the quote that opens here is not closed within {megabytes:g} MB; close it, or double it if it is data",
                line,
            )
        return CsvRefused(
            f"line {line}: the record that begins here is larger than {megabytes:g} MB; split it or drop its largest column",
            line,
        )


def _ragged(line: int, found: int, expected: int) -> CsvRefused:
    return CsvRefused(
        f"line {line} has {found} field{'s' * (found != 1)}, the header has {expected}; quote a field that holds the"
        " delimiter, or correct the line",
        line,
    )


def _not_utf8(line: int) -> CsvRefused:
    return CsvRefused(
        f"line {line}: not valid UTF-8 (perhaps Windows-1252 or Latin-1); save the file as UTF-8 and upload it again",
        line,
    )


def _warnings(reading: _Reading, columns: list[str], mixed_ends: bool) -> list[str]:
    lexer = reading.lexer
    found: list[str] = []
    duplicates = sorted({name for name in columns if name and columns.count(name) > 1})
    if duplicates:
        found.append(f"column names that occur more than once: {', '.join(map(repr, duplicates[:5]))}")
    empty = [str(i) for i, name in enumerate(columns, 1) if not name.strip()]
    if empty:
        found.append(f"columns without a name: number {', '.join(empty[:5])}")
    if columns and all(_is_number(name) for name in columns):
        found.append("the first line looks like data, not like column names; it is taken as the header")
    if len(columns) == 1:
        found.append("only one column: no comma, semicolon, tab or bar separates fields in the header")
    if mixed_ends:
        found.append(f"mixed line ends: {lexer.lf} LF, {lexer.crlf} CRLF, {lexer.cr} CR")
    if lexer.stray_quotes:
        found.append(f"{lexer.stray_quotes} quotes inside unquoted fields, the first on line {lexer.first_stray_line}; kept as data")
    if lexer.tails:
        found.append(f"{lexer.tails} closing quotes with text after them; read as Python's csv module does")
    if reading.blank_lines:
        found.append(f"{reading.blank_lines} blank lines are not records; they stay with the record before them")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
