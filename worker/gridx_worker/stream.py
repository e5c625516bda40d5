"""A script's output, taken apart: marked lines are events of the helper, all else is log text. Pure, and bounded in memory."""

import codecs
import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gridx_protocol.messages import MetricPoint

MAX_EVENT_BYTES = 65536
PIECE_CHARACTERS = 4096


class OutputSplitter:
    """Feed it bytes as they come. `mark` is the attempt's own secret word: a print cannot be taken for an event by accident."""

    def __init__(self, mark: str, *, on_text: Callable[[str], None], on_event: Callable[[dict[str, Any]], None]) -> None:
        self._start = f"\x1e{mark} ".encode()
        self._on_text = on_text
        self._on_event = on_event
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = b""

    def feed(self, data: bytes) -> None:
        data = self._held + data
        self._held = b""
        while data:
            before, mark, rest = data.partition(self._start)
            if not mark:
                keep = _overlap(before, self._start)
                self._text(before[: len(before) - keep])
                self._held = before[len(before) - keep :]
                return
            self._text(before)
            line, end, after = rest.partition(b"\n")
            if not end and len(rest) <= MAX_EVENT_BYTES:
                self._held = mark + rest
                return
            self._event(line if end else rest)
            data = after

    def close(self) -> None:
        self._text(self._held, final=True)
        self._held = b""

    def _text(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final).replace("\x00", "\N{REPLACEMENT CHARACTER}")
        if text:
            self._on_text(text)

    def _event(self, line: bytes) -> None:
        try:
            # A script may write the mark itself: what follows may be nested without end, or hold half surrogate pairs that no message takes
            event = json.loads(json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self._on_event(event)


class BoundedLog:
    """Keeps at most `cap` bytes of text: the head as it comes, then the tail, with a line in between that says how much was cut.

    take() hands out what may be sent now; close() makes the tail available too.
    """

    def __init__(self, cap: int) -> None:
        self._head_left = cap // 2
        self._ready: deque[str] = deque()
        self._tail: deque[str] = deque()
        self._tail_bytes = 0
        self._tail_cap = cap - cap // 2
        self._cut_bytes = 0

    def add(self, text: str) -> None:
        size = len(text.encode())
        if not self._tail and size <= self._head_left:
            self._head_left -= size
            _append(self._ready, text)
            return
        if not self._tail and self._head_left > 0:
            head = text.encode()[: self._head_left].decode(errors="ignore")
            self._ready.append(head)
            text, self._head_left = text[len(head) :], 0
            size = len(text.encode())
        _append(self._tail, text)
        self._tail_bytes += size
        while len(self._tail) > 1 and self._tail_bytes - (first := len(self._tail[0].encode())) >= self._tail_cap:
            self._tail.popleft()
            self._tail_bytes -= first
            self._cut_bytes += first

    def take(self, characters: int) -> str:
        """Up to so many characters of text that has not been taken yet; empty when there is none."""
        taken: list[str] = []
        while self._ready and characters > 0:
            text = self._ready.popleft()
            if len(text) > characters:
                self._ready.appendleft(text[characters:])
                text = text[:characters]
            taken.append(text)
            characters -= len(text)
        return "".join(taken)

    def close(self) -> None:
        if self._cut_bytes:
            self._ready.append(f"\n[... {self._cut_bytes} bytes of output left out ...]\n")
        self._ready.extend(self._tail)
        self._tail.clear()


def read_point(seq: int, event: Mapping[str, Any]) -> MetricPoint:
    """A report as it goes over the wire. Loss and accuracy that are not finite become null; others are dropped."""
    more: dict[str, float] = {}
    extra = event.get("more")
    for name, value in list(extra.items())[:32] if isinstance(extra, dict) else []:
        number = _finite(value)
        if number is not None:
            more[str(name)[:64]] = number
    epoch = _finite(event.get("epoch"))
    return MetricPoint(
        seq=seq,
        epoch=int(epoch) if epoch is not None and 0 <= epoch <= 2**31 else None,
        loss=_finite(event.get("loss")),
        accuracy=_finite(event.get("accuracy")),
        more=more,
    )


def _append(pieces: deque[str], text: str) -> None:
    """Small pieces are joined, so that a script that prints letter by letter costs no more memory than its text."""
    if pieces and len(pieces[-1]) + len(text) <= PIECE_CHARACTERS:
        pieces[-1] += text
    else:
        pieces.append(text)


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _overlap(data: bytes, start: bytes) -> int:
    """How many bytes at the end of `data` could be the beginning of `start`."""
    for count in range(min(len(start) - 1, len(data)), 0, -1):
        if data.endswith(start[:count]):
            return count
    return 0
