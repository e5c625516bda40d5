"""Records in = records out, byte for byte, each in one chunk."""

import hashlib
import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridx.datasets.csv_records import CsvRefused, record_blocks, scan
from gridx.datasets.partitioners import TooFewRows, UnknownPartitioner, chunk_sizes, contiguous_sizes, deal
from gridx.datasets.splitting import SourceChanged, SplitResult, restore, split
from tests.backend.datasets.csv_strategies import BLOCKS, csv_files


def records(path: Path) -> list[bytes]:
    found = scan(path)
    out: list[bytes] = []
    for data, starts in record_blocks(path, found):
        edges = [*starts.tolist(), len(data)]
        out += [data[a:b] for a, b in pairwise(edges)]
    return out


def write_rows(folder: Path, rows: int, tail: bytes = b"\n") -> Path:
    path = folder / "upload.csv"
    path.write_bytes(b"a,b\n" + b"\n".join(b"%d,%d" % (i, i * i) for i in range(rows)) + tail)
    return path


def check(source: Path, result: SplitResult, folder: Path) -> None:
    """What holds for every split."""
    raw = source.read_bytes()
    header = raw[: scan(source).header_end]
    dealt: Counter[bytes] = Counter()
    for chunk in result.chunks:
        data = chunk.path.read_bytes()
        assert data.startswith(header)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (chunk.bytes, chunk.sha256)
        # The final record may stand in mid-file only with a line end; dealt in order it never does.
        body = records(chunk.path)
        assert len(body) == chunk.rows > 0
        dealt.update(body)
    assert dealt == Counter(records(source))
    assert sorted(path.name for path in folder.iterdir()) == sorted([*(c.path.name for c in result.chunks), "rows.map"])
    restore(result.map_path, [chunk.path for chunk in result.chunks], folder / "back.csv")
    assert (folder / "back.csv").read_bytes() == raw


class TestSplit:
    @settings(max_examples=300, deadline=None)
    @given(
        file=csv_files(),
        block=BLOCKS,
        chunks=st.integers(1, 5),
        partitioner=st.sampled_from(["iid", "contiguous"]),
        seed=st.integers(0, 3),
    )
    def test_every_record_lands_in_one_chunk(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        file: tuple[bytes, str],
        block: int,
        chunks: int,
        partitioner: str,
        seed: int,
    ) -> None:
        folder = tmp_path_factory.mktemp("split")
        source = folder / "upload.csv"
        source.write_bytes(file[0])
        try:
            found = scan(source)
        except CsvRefused:
            return
        if found.rows < chunks:
            with pytest.raises(TooFewRows):
                split(source, found, partitioner, chunks, seed, folder / "out")
            return
        result = split(source, found, partitioner, chunks, seed, folder / "out", block_bytes=block)
        check(source, result, folder / "out")
        if partitioner == "contiguous":
            bodies = [chunk.path.read_bytes()[found.header_end :] for chunk in result.chunks]
            assert source.read_bytes()[: found.header_end] + b"".join(bodies) == source.read_bytes()

    @pytest.mark.parametrize("partitioner", ["iid", "contiguous"])
    @pytest.mark.parametrize("tail", [b"\n", b""])
    def test_more_chunks_than_open_files(self, tmp_path: Path, partitioner: str, tail: bytes) -> None:
        source = write_rows(tmp_path, 1000, tail)
        result = split(source, scan(source), partitioner, 300, 1, tmp_path / "out", block_bytes=512)
        check(source, result, tmp_path / "out")

    def test_contiguous_gives_the_first_chunks_one_row_more(self, tmp_path: Path) -> None:
        source = write_rows(tmp_path, 11)
        result = split(source, scan(source), "contiguous", 4, 0, tmp_path / "out")
        assert [chunk.rows for chunk in result.chunks] == [3, 3, 3, 2]
        assert result.chunks[0].path.read_bytes() == b"a,b\n0,0\n1,1\n2,4\n"

    def test_the_same_seed_gives_the_same_chunks(self, tmp_path: Path) -> None:
        source = write_rows(tmp_path, 100)
        hashes = [
            [chunk.sha256 for chunk in split(source, scan(source), "iid", 3, seed, tmp_path / name).chunks]
            for seed, name in [(7, "a"), (7, "b"), (8, "c")]
        ]
        assert hashes[0] == hashes[1] != hashes[2]

    def test_a_changed_source_leaves_nothing(self, tmp_path: Path) -> None:
        source = write_rows(tmp_path, 10)
        found = scan(source)
        for wrong in (replace(found, rows=9), replace(found, rows=11), replace(found, bytes=found.bytes + 1)):
            for partitioner in ("iid", "contiguous"):
                with pytest.raises(SourceChanged):
                    split(source, wrong, partitioner, 2, 0, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_full_disk_is_reported_and_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = write_rows(tmp_path, 10)

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            split(source, scan(source), "iid", 2, 0, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []

    def test_chunks_of_another_map_are_refused(self, tmp_path: Path) -> None:
        source = write_rows(tmp_path, 101)
        result = split(source, scan(source), "iid", 2, 0, tmp_path / "out")
        with pytest.raises(ValueError, match="row map"):
            restore(result.map_path, [result.chunks[0].path], tmp_path / "back.csv")
        with pytest.raises(ValueError, match=r"fewer records|chunks hold"):
            restore(result.map_path, [result.chunks[1].path] * 2, tmp_path / "back.csv")
        assert not (tmp_path / "back.csv").exists()


class TestDeal:
    @given(rows=st.integers(1, 3000), chunks=st.integers(1, 600), seed=st.integers(0, 5))
    def test_iid_is_balanced_and_small(self, rows: int, chunks: int, seed: int) -> None:
        if rows < chunks:
            with pytest.raises(TooFewRows):
                deal("iid", rows, chunks, seed)
            return
        dealt = deal("iid", rows, chunks, seed)
        assert dealt is not None
        assert dealt.dtype == (np.uint8 if chunks <= 256 else np.uint16)
        assert np.array_equal(chunk_sizes(dealt, rows, chunks), contiguous_sizes(rows, chunks))

    def test_iid_mixes_a_sorted_file(self) -> None:
        dealt = deal("iid", 10_000, 4, 0)
        assert dealt is not None
        half = np.bincount(dealt[:5000], minlength=4)
        assert half.min() > 1100

    def test_unknown_names_and_counts(self) -> None:
        with pytest.raises(UnknownPartitioner, match="by_column, contiguous, dirichlet, iid"):
            deal("random", 10, 2)
        with pytest.raises(ValueError, match="between 1 and"):
            deal("iid", 10, 0)
