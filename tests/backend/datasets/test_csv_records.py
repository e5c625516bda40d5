"""The scanner against Python's csv module, which defines what a record is."""

import csv
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridx.datasets.csv_records import CsvRefused, CsvScan, record_blocks, scan
from tests.backend.datasets.csv_strategies import BLOCKS, csv_files


def records_by_csv(raw: bytes, delimiter: str) -> list[list[str]]:
    text = raw.decode("utf-8-sig")
    return [record for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if record]


def scan_bytes(folder: Path, raw: bytes, **options: int) -> tuple[Path, CsvScan]:
    path = folder / "upload.csv"
    path.write_bytes(raw)
    return path, scan(path, **options)


class TestScan:
    @settings(max_examples=400, deadline=None)
    @given(file=csv_files(), block=BLOCKS)
    def test_counts_what_csv_reads(self, tmp_path_factory: pytest.TempPathFactory, file: tuple[bytes, str], block: int) -> None:
        raw, delimiter = file
        expected = records_by_csv(raw, delimiter)
        folder = tmp_path_factory.mktemp("csv")
        if len(expected) < 2 or any(len(record) != len(expected[0]) for record in expected):
            with pytest.raises(CsvRefused):
                scan_bytes(folder, raw, block_bytes=block)
            return
        _, found = scan_bytes(folder, raw, block_bytes=block)
        assert found.delimiter == delimiter
        assert found.rows == len(expected) - 1
        assert found.columns == expected[0]
        assert found.bytes == len(raw)
        assert found.has_bom == raw.startswith(b"\xef\xbb\xbf")
        assert found.ends_with_newline == raw.endswith((b"\n", b"\r"))
        assert CsvScan.from_json(found.to_json()) == found

    @settings(max_examples=400, deadline=None)
    @given(file=csv_files(), block=BLOCKS)
    def test_blocks_hold_each_record_byte_for_byte(
        self, tmp_path_factory: pytest.TempPathFactory, file: tuple[bytes, str], block: int
    ) -> None:
        raw, delimiter = file
        try:
            path, found = scan_bytes(tmp_path_factory.mktemp("csv"), raw)
        except CsvRefused:
            return
        pieces: list[bytes] = []
        for data, starts in record_blocks(path, found, block_bytes=block):
            assert starts.dtype == np.int64
            assert starts[0] == 0
            edges = [*starts.tolist(), len(data)]
            pieces += [data[a:b] for a, b in pairwise(edges)]
        assert raw[: found.header_end] + b"".join(pieces) == raw
        expected = records_by_csv(raw, delimiter)[1:]
        assert [records_by_csv(piece, delimiter) for piece in pieces] == [[record] for record in expected]

    @settings(max_examples=300, deadline=None)
    @given(
        raw=st.text(st.sampled_from(list('a,;"\n\r')), min_size=1, max_size=30).map(lambda body: f"h,i\n{body}".encode()),
        block=BLOCKS,
    )
    def test_any_bytes_are_read_as_csv_does_or_refused(self, tmp_path_factory: pytest.TempPathFactory, raw: bytes, block: int) -> None:
        try:
            _, found = scan_bytes(tmp_path_factory.mktemp("csv"), raw, block_bytes=block)
        except CsvRefused:
            with pytest.raises(CsvRefused):
                scan_bytes(tmp_path_factory.mktemp("csv"), raw)
            return
        expected = records_by_csv(raw, found.delimiter)
        assert found.rows == len(expected) - 1
        assert {len(record) for record in expected} == {len(found.columns)}

    @pytest.mark.parametrize("seed", range(12))
    def test_long_quoted_files(self, tmp_path: Path, seed: int) -> None:
        """Many lanes of the state machine in one block, and their borders."""
        random = np.random.default_rng(seed)
        fields = ["1", "", "ab", '"q"', '"a,b"', '"l\nm"', '"d""d"', 's"t', '"c"t', '""', '"\r\n,"']
        rows = [",".join(random.choice(fields, size=5)) for _ in range(3000)]
        raw = ("a,b,c,d,e\n" + "\n".join(rows)).encode()
        expected = records_by_csv(raw, ",")
        for block in (1000, 4096, 1 << 18):
            path, found = scan_bytes(tmp_path, raw, block_bytes=block)
            assert found.rows == len(expected) - 1 == 3000
            pieces = [p for data, starts in record_blocks(path, found, block_bytes=block) for p in np.split(list(data), starts[1:])]
            assert [records_by_csv(bytes(p.tolist()), ",")[0] for p in pieces] == expected[1:]

    def test_plain_files_are_recognised(self, tmp_path: Path) -> None:
        assert scan_bytes(tmp_path, b'a,b\n1,"x"\n')[1].plain
        assert not scan_bytes(tmp_path, b'a,b\n1,"x\ny"\n')[1].plain
        assert not scan_bytes(tmp_path, b"a,b\n1,2\n\n3,4\n")[1].plain
        assert not scan_bytes(tmp_path, b"a,b\r\n1,2\n")[1].plain

    def test_semicolons_with_decimal_commas(self, tmp_path: Path) -> None:
        found = scan_bytes(tmp_path, b"a;b\n1,5;2,5\n3,5;4,5\n")[1]
        assert (found.delimiter, found.columns, found.rows) == (";", ["a", "b"], 2)

    def test_one_column(self, tmp_path: Path) -> None:
        found = scan_bytes(tmp_path, b"text\nhello\n\nworld")[1]
        assert (found.columns, found.rows) == (["text"], 2)
        assert any("only one column" in warning for warning in found.warnings)

    @pytest.mark.parametrize(
        ("raw", "word"),
        [
            (b"a,a\n1,2\n", "more than once"),
            (b"a,\n1,2\n", "without a name"),
            (b"1,2\n3,4\n", "looks like data"),
            (b"a,b\r\n1,2\n", "mixed line ends"),
            (b'a,b\n5" pipe,2\n', "inside unquoted fields, the first on line 2"),
            (b'a,b\n"x"y,2\n', "closing quotes"),
            (b"a,b\n\n1,2\n", "blank lines"),
        ],
    )
    def test_warnings_say_what_is_odd(self, tmp_path: Path, raw: bytes, word: str) -> None:
        assert word in " ".join(scan_bytes(tmp_path, raw)[1].warnings)


class TestRefusals:
    @pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 18])
    @pytest.mark.parametrize(
        ("raw", "line", "word"),
        [
            (b"", None, "empty"),
            (b"\xef\xbb\xbf", None, "empty"),
            (b"\n\r\n\n", None, "blank"),
            (b"a,b\n", None, "no records"),
            (b"a,b", None, "no records"),
            (b"a,b\n\n\n", None, "no records"),
            (b"a,b\n1,2\n3\n", 3, "line 3 has 1 field, the header has 2"),
            (b"a,b\n1,2\n3,4,5", 3, "line 3 has 3 fields"),
            (b'a,b\n"x\ny",2\n\n1\n', 5, "line 5 has 1 field"),
            (b"a,b\r1,2\r3\r", 3, "line 3"),
            (b"a,b\r\n1,2\r\n\r\n3,4,5\r\n", 4, "line 4"),
            (b'a,b\n1,2\n3,"4\n5,6\n', 3, "never closed"),
            (b'a,b\n"x\n\ny","\n\nz\n', 4, "never closed"),
            (b"a,b\n1,\xff\n", 2, "UTF-8"),
            (b"a,b\n1,2\n3,\xe6\xbc", 3, "UTF-8"),
            ("a,b\n1,2\n3,é".encode("latin-1") + b"\n", 3, "UTF-8"),
            (b"a,b\n1,2\n3,\x00\n", 3, "NUL"),
            ("a,b\n1,2\n".encode("utf-16"), 1, "UTF-16"),
            ("a,b\n1,2\n3,4\n".encode("utf-16-le"), 1, "UTF-16"),
            (b"PK\x03\x04....xl/workbook", None, "Excel"),
            (b"PK\x03\x04....", None, "zip"),
            (b"PAR1....", None, "Parquet"),
            (b"\x1f\x8b....", None, "gzip"),
        ],
    )
    def test_name_the_line(self, tmp_path: Path, raw: bytes, line: int | None, word: str, block: int) -> None:
        with pytest.raises(CsvRefused, match=word) as refused:
            scan_bytes(tmp_path, raw, block_bytes=block)
        assert refused.value.line == line

    @pytest.mark.parametrize("block", [4, 16, 1 << 18])
    def test_a_record_beyond_the_cap(self, tmp_path: Path, block: int) -> None:
        raw = b"a,b\n1,2\n" + b"x" * 100 + b",2\n3,4\n"
        with pytest.raises(CsvRefused, match="line 3: the record") as refused:
            scan_bytes(tmp_path, raw, block_bytes=block, max_record_bytes=64)
        assert refused.value.line == 3

    def test_a_quote_open_beyond_the_cap(self, tmp_path: Path) -> None:
        raw = b'a,b\n1,2\n3,"' + b"x\n" * 100
        with pytest.raises(CsvRefused, match="line 3: the quote"):
            scan_bytes(tmp_path, raw, block_bytes=16, max_record_bytes=64)

    def test_a_long_utf8_character_cut_by_every_block(self, tmp_path: Path) -> None:
        raw = b"a,b\n" + "漢字é😀,1\n".encode() * 20
        for block in range(1, 12):
            assert scan_bytes(tmp_path, raw, block_bytes=block)[1].rows == 20
