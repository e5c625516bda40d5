"""Where lines and fields of a CSV begin, block by block and without a Python loop over its bytes.

The rules are those of Python's `csv` module with its default settings (quote character `"`, doubled quotes, not
strict), see `Modules/_csv.c`: a quote is special only as a field's first byte; inside an unquoted field, and after a
closing quote, it is data; LF, CRLF and a lone CR end a line anywhere outside quotes.

A block without a quote needs only the positions of separators. A block with quotes runs the reader's four-state
machine over the positions of separators and quotes: the positions are dealt to parallel lanes, each lane composes its
transition functions (a function of four states fits one byte), then the lanes are chained.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES: Final = 1 << 18  # measured: larger blocks fall out of the cache, smaller ones pay per call
_LF, _CR, _QUOTE = 10, 13, 34
_FIELD_START, _IN_FIELD, _IN_QUOTES, _QUOTE_IN_QUOTES = range(4)
_SEPARATOR, _QUOTE_TOKEN, _AFTER_GAP, _IDENTITY = 0, 1, 2, 4
_LANE = 64  # tokens in a lane

Positions = NDArray[np.int64]


def _tables() -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """(composition table indexed by `8 * function + token`, state table indexed by `[function, state]`).

    Entries of the first are functions times 8, ready for the next step.
    """
    other = (_IN_FIELD, _IN_FIELD, _IN_QUOTES, _IN_FIELD)
    separator = (_FIELD_START, _FIELD_START, _IN_QUOTES, _FIELD_START)
    quote = (_IN_QUOTES, _IN_FIELD, _QUOTE_IN_QUOTES, _IN_QUOTES)
    steps = [separator, quote, tuple(separator[s] for s in other), tuple(quote[s] for s in other), (0, 1, 2, 3)]
    apply = np.empty((256, 4), dtype=np.uint8)
    compose = np.zeros((256, 8), dtype=np.intp)
    for function in range(256):
        images = [(function >> (2 * state)) & 3 for state in range(4)]
        apply[function] = images
        for token, step in enumerate(steps):
            compose[function, token] = 8 * sum(step[image] << (2 * state) for state, image in enumerate(images))
    return compose.reshape(-1), apply


_COMPOSE, _APPLY = _tables()
_IDENTITY_FUNCTION = 8 * 0b11100100


@dataclass(slots=True)
class Lines:
    """What one block told. Offsets count from the block's first byte.

    starts: where lines that hold at least one byte of content begin; such lines are the records (and the header).
    fields: for every line that ended in this block, blank or not, how many fields it has, shape (lines ended,).
    blank: for the same lines, whether the line is empty.
    ends: for the same lines, the offset just past their line end.
    """

    starts: Positions
    fields: Positions
    blank: NDArray[np.bool_]
    ends: Positions


@dataclass(slots=True)
class LineLexer:
    """Feeds on a file's blocks in order; a block must not end between CR and LF (`read_blocks` sees to that)."""

    delimiter: int
    state: int = _FIELD_START
    at_line_start: bool = True
    open_fields: int = 0  # separators seen in the line that is still open
    lines: int = 0  # physical line ends before the next block, those inside quotes included
    ended: int = 0  # line ends that end a line of the CSV
    lf: int = 0
    crlf: int = 0
    cr: int = 0
    stray_quotes: int = 0  # quotes kept as data inside unquoted fields
    tails: int = 0  # closing quotes followed by more text of the same field
    first_stray_line: int | None = None
    quote_line: int = 0  # the line where the quote that is open now was opened

    @property
    def in_quotes(self) -> bool:
        return self.state == _IN_QUOTES

    def feed(self, block: bytes) -> Lines:
        """Positions of lines in `block`, shape and meaning as in `Lines`; O(len(block)) time and memory."""
        data = np.frombuffer(block, dtype=np.uint8)
        cr_in_block = b"\r" in block
        line_ends: int | None = None
        if b'"' in block:
            separators, line_ends = self._structural(block, data)
        elif self.in_quotes:
            separators, line_ends = np.empty(0, dtype=np.int64), count_line_ends(block)
        else:
            if self.state == _QUOTE_IN_QUOTES and block[0] not in (self.delimiter, _LF, _CR):
                self.tails += 1
            hit = (data == self.delimiter) | (data == _LF)
            if cr_in_block:
                hit |= data == _CR
            separators = np.flatnonzero(hit)
            self.state = _FIELD_START if len(separators) and separators[-1] == len(data) - 1 else _IN_FIELD
        if cr_in_block:
            separators = _join_crlf(data, separators)
        values = data[separators]
        newline = np.flatnonzero(values != self.delimiter)
        lines = self._lines(data, separators, newline)
        self._count_ends(data, lines.ends, cr_in_block)
        self.lines += len(lines.ends) if line_ends is None else line_ends
        return lines

    def line_at(self, block: bytes, offset: int) -> int:
        """Number (from 1) of the physical line that holds `offset` of `block`, the block fed last."""
        return self.lines - count_line_ends(block[offset:]) + 1

    def _lines(self, data: NDArray[np.uint8], separators: Positions, newline: Positions) -> Lines:
        ends = separators[newline] + 1
        fields = np.diff(newline, prepend=-1)
        if len(fields):
            fields[0] += self.open_fields
            self.open_fields = len(separators) - 1 - int(newline[-1])
        else:
            self.open_fields += len(separators)
        begins = np.empty(len(ends) + 1, dtype=np.int64)
        begins[0] = 0
        begins[1:] = ends
        known = begins[:-1] if len(begins) > 1 and begins[-1] == len(data) else begins
        first = data[known]
        content = (first != _LF) & (first != _CR)
        blank = ~content[: len(ends)]
        if not self.at_line_start:
            content[0] = False  # it began in an earlier block
            if len(blank):
                blank[0] = False
        self.at_line_start = len(known) < len(begins)
        return Lines(starts=known[content], fields=fields, blank=blank, ends=ends)

    def _count_ends(self, data: NDArray[np.uint8], ends: Positions, cr_in_block: bool) -> None:
        self.ended += len(ends)
        if not cr_in_block:
            self.lf += len(ends)
            return
        last = data[ends - 1]
        before = data[np.maximum(ends - 2, 0)]
        cr = int(np.count_nonzero(last == _CR))
        crlf = int(np.count_nonzero((last == _LF) & (before == _CR) & (ends > 1)))
        self.cr += cr
        self.crlf += crlf
        self.lf += len(ends) - cr - crlf

    def _structural(self, block: bytes, data: NDArray[np.uint8]) -> tuple[Positions, int]:
        """(separators outside quotes, number of physical line ends) of a block that holds or continues quotes."""
        line_ends = count_line_ends(block)
        quote = data == _QUOTE
        hit = (data == self.delimiter) | (data == _LF) | (data == _CR) | quote
        tokens = np.flatnonzero(hit)
        if len(tokens) == 0:
            self.state = _after_gap(self.state)
            return tokens, line_ends
        gap = np.empty(len(tokens), dtype=np.bool_)
        gap[0] = tokens[0] > 0
        np.greater(np.diff(tokens), 1, out=gap[1:])
        token = quote[tokens].astype(np.uint8)
        token[gap] += _AFTER_GAP
        after = _run(token, self.state)
        before = np.empty_like(after)
        before[0] = self.state
        before[1:] = after[:-1]
        self._note_quotes(block, tokens, before, after, gap, line_ends)
        self.state = int(after[-1]) if tokens[-1] == len(data) - 1 else _after_gap(int(after[-1]))
        # Only a separator outside quotes leads to the start of a field.
        return tokens[after == _FIELD_START], line_ends

    def _note_quotes(
        self,
        block: bytes,
        tokens: Positions,
        before: NDArray[np.uint8],
        after: NDArray[np.uint8],
        gap: NDArray[np.bool_],
        line_ends: int,
    ) -> None:
        stray = after == _IN_FIELD  # only a quote inside an unquoted field leaves the machine there
        count = int(np.count_nonzero(stray))
        if count and self.first_stray_line is None:
            self.first_stray_line = self.lines + count_line_ends(block[: int(tokens[np.argmax(stray)])]) + 1
        self.stray_quotes += count
        self.tails += int(np.count_nonzero((before == _QUOTE_IN_QUOTES) & gap))
        if after[-1] == _IN_QUOTES:
            opened = np.flatnonzero((after == _IN_QUOTES) & (before == _FIELD_START))
            if len(opened):
                at = int(tokens[opened[-1]])
                self.quote_line = self.lines + line_ends - count_line_ends(block[at:]) + 1


def read_blocks(path: Path, start: int = 0, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The file's bytes from `start` on, in blocks of about `block_bytes`; none but the last ends in CR."""
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        held = b""
        while block := file.read(block_bytes):
            if held:
                block = held + block
                held = b""
            if block.endswith(b"\r"):
                block, held = block[:-1], b"\r"
            if block:
                yield block
        if held:
            yield held


def count_line_ends(block: bytes) -> int:
    """Line ends in `block`: LF, CRLF (one) and lone CR."""
    count = block.count(b"\n")
    if b"\r" in block:
        count += block.count(b"\r") - block.count(b"\r\n")
    return count


def _after_gap(state: int) -> int:
    """The state after at least one byte that is neither separator nor quote."""
    return _IN_QUOTES if state == _IN_QUOTES else _IN_FIELD


def _join_crlf(data: NDArray[np.uint8], separators: Positions) -> Positions:
    """`separators` without each CR that an LF follows at once: the LF ends the line."""
    cr = data[separators] == _CR
    following = np.minimum(separators + 1, len(data) - 1)
    return separators[~(cr & (data[following] == _LF))]


def _run(tokens: NDArray[np.uint8], state: int) -> NDArray[np.uint8]:
    """The state after each token, shape (tokens,), when the machine is in `state` before the first."""
    lanes = -(-len(tokens) // _LANE)
    padded = np.full(lanes * _LANE, _IDENTITY, dtype=np.uint8)
    padded[: len(tokens)] = tokens
    columns = padded.reshape(lanes, _LANE).T.astype(np.intp, order="C")
    functions = np.empty((_LANE, lanes), dtype=np.uint8)
    function = np.full(lanes, _IDENTITY_FUNCTION, dtype=np.intp)
    for step in range(_LANE):
        function = _COMPOSE[function + columns[step]]
        functions[step] = function >> 3
    entry = np.empty(lanes, dtype=np.uint8)
    for lane, whole in enumerate(functions[-1].tolist()):
        entry[lane] = state
        state = (whole >> (2 * state)) & 3
    return _APPLY[functions, entry].T.reshape(-1)[: len(tokens)]
