import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridx_worker.stream import BoundedLog, OutputSplitter, read_point

MARK = "m4rk"
LINE = b'\x1em4rk {"event": "report", "loss": 1}\n'


def split(data: bytes, cuts: list[int]) -> tuple[str, list[dict[str, Any]]]:
    texts: list[str] = []
    events: list[dict[str, Any]] = []
    splitter = OutputSplitter(MARK, on_text=texts.append, on_event=events.append)
    places = sorted({min(cut, len(data)) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        splitter.feed(data[start:end])
    splitter.close()
    return "".join(texts), events


class TestOutputSplitter:
    @given(st.lists(st.integers(0, 200), max_size=12))
    def test_cuts_between_reads_change_nothing(self, cuts: list[int]) -> None:
        text, events = split("größe: ".encode() + LINE + b"halbe Zeile \x1em4r" + LINE + LINE + b"end", cuts)
        assert text == "größe: halbe Zeile \x1em4rend"
        assert events == [{"event": "report", "loss": 1}] * 3

    def test_report_in_the_middle_of_a_printed_line(self) -> None:
        assert split(b"50%\r" + LINE + b"100%\n", [])[0] == "50%\r100%\n"

    def test_another_attempts_mark_is_just_text(self) -> None:
        text, events = split(LINE.replace(b"m4rk", b"0ther"), [])
        assert events == []
        assert "0ther" in text

    def test_damaged_event_is_dropped(self) -> None:
        assert split(b'\x1em4rk {"event"\nafter', []) == ("after", [])

    @pytest.mark.parametrize("line", [b"[" * 60_000, b'{"a":' * 10_000, b'{"loss": ' + b"9" * 5000 + b"}", b'{"loss": 1e999', b"\xff\xfe"])
    def test_hostile_event_is_dropped_and_what_follows_is_read(self, line: bytes) -> None:
        assert split(b"\x1em4rk " + line + b"\n" + LINE + b"after", []) == ("after", [{"event": "report", "loss": 1}])

    def test_half_a_surrogate_pair_never_gets_further(self) -> None:
        _, events = split(b'\x1em4rk {"event": "report", "more": {"\\ud800": 1}, "words": ["\\udfff"]}\n', [])
        assert events == [{"event": "report", "more": {"?": 1}, "words": ["?"]}]

    def test_bytes_that_are_no_text(self) -> None:
        assert split(b"a\xff\x00b", [1, 2])[0] == "a\ufffd\ufffdb"

    def test_endless_event_is_not_kept(self) -> None:
        held: list[int] = []
        splitter = OutputSplitter(MARK, on_text=lambda text: None, on_event=lambda event: None)
        splitter.feed(b"\x1em4rk ")
        for _ in range(100):
            splitter.feed(b"x" * 10_000)
            held.append(len(splitter._held))
        assert max(held) < 100_000


class TestBoundedLog:
    def drain(self, log: BoundedLog) -> str:
        return "".join(iter(lambda: log.take(1000), ""))

    @given(st.lists(st.text(max_size=30), max_size=50))
    def test_short_output_is_whole(self, pieces: list[str]) -> None:
        log = BoundedLog(10**6)
        for piece in pieces:
            log.add(piece)
        log.close()
        assert self.drain(log) == "".join(pieces)

    @given(st.lists(st.text(min_size=1, max_size=3000), min_size=1, max_size=60))
    def test_head_and_tail_are_kept_within_the_cap(self, pieces: list[str]) -> None:
        cap = 20_000
        log = BoundedLog(cap)
        for piece in pieces:
            log.add(piece)
        log.close()
        whole, kept = "".join(pieces), self.drain(log)
        if len(whole.encode()) <= cap // 2:
            assert kept == whole
            return
        assert len(kept.encode()) <= cap + 20_000  # a piece more than the tail's share, and the line about the cut
        assert whole.startswith(kept[:1000]) or "left out" in kept[:1100]
        assert kept.endswith(whole[-100:])
        if "bytes of output left out" in kept:
            head, _, rest = kept.partition("\n[... ")
            left_out = int(rest.split(" ", 1)[0])
            tail = rest.split(" ...]\n", 1)[1]
            assert len(head.encode()) + left_out + len(tail.encode()) == len(whole.encode())

    def test_the_head_is_there_while_the_script_runs(self) -> None:
        log = BoundedLog(1000)
        log.add("epoch 1\n")
        assert log.take(100) == "epoch 1\n"


class TestReadPoint:
    def test_numbers_that_are_none_in_json(self) -> None:
        point = read_point(4, {"epoch": 2.0, "loss": math.nan, "accuracy": 10**400, "more": {"lr": math.inf, "f1": 0.5, "text": "x"}})
        assert (point.seq, point.epoch, point.loss, point.accuracy, point.more) == (4, 2, None, None, {"f1": 0.5})

    def test_nonsense_from_a_script_that_writes_its_own_lines(self) -> None:
        point = read_point(0, {"epoch": -1, "loss": True, "more": [1, 2]})
        assert (point.epoch, point.loss, point.more) == (None, None, {})
