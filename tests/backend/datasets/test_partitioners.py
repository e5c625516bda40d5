"""Dealing rows by what they hold: every row in exactly one chunk, the same deal from the same seed, and what each rule promises."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gridx.datasets.csv_records import scan
from gridx.datasets.labels import LabelsUnusable, read_labels
from gridx.datasets.partitioner_options import OPTIONS, parse_options
from gridx.datasets.partitioners import PARTITIONERS, Undealable, deal
from gridx.datasets.splitting import restore, split

LABELS = np.repeat(np.array([0, 1, 2], dtype=np.int32), [60, 30, 9])


def dealt(partitioner: str, chunks: int, seed: int = 1, labels: Any = LABELS, **options: Any) -> Any:
    found = deal(partitioner, len(labels), chunks, seed, parse_options(partitioner, options).model_dump(), labels)
    assert found is not None
    assert found.shape == (len(labels),)
    return found


def table(deal_: Any, chunks: int, labels: Any = LABELS) -> Any:
    """Rows of each value in each chunk, shape (chunks, values)."""
    return np.stack([np.bincount(labels[deal_ == chunk], minlength=labels.max() + 1) for chunk in range(chunks)])


class TestRules:
    def test_there_are_options_for_each(self) -> None:
        assert set(OPTIONS) == set(PARTITIONERS)

    @given(st.integers(1, 9), st.integers(0, 2**31), st.lists(st.integers(0, 4), min_size=9, max_size=200))
    def test_stratified_gives_each_chunk_its_share_of_each_value(self, chunks: int, seed: int, values: list[int]) -> None:
        labels = np.array(values, dtype=np.int32)
        counts = table(dealt("stratified", chunks, seed, labels, column="y"), chunks, labels)
        assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
        assert np.ptp(counts.sum(axis=1)) <= 1

    def test_stratified_reaches_every_chunk_with_a_rare_value(self) -> None:
        assert table(dealt("stratified", 9, column="y"), 9)[:, 2].tolist() == [1] * 9

    def test_dirichlet_is_uneven_when_alpha_is_small_and_even_when_it_is_large(self) -> None:
        labels = np.repeat(np.arange(5, dtype=np.int32), 400)
        small = table(dealt("dirichlet", 4, 3, labels, column="y", alpha=0.1), 4, labels)
        large = table(dealt("dirichlet", 4, 3, labels, column="y", alpha=1000), 4, labels)
        assert small.sum() == large.sum() == 2000
        assert (small > 300).sum() >= 3
        assert abs(large - 100).max() < 30

    def test_dirichlet_leaves_no_chunk_empty_or_says_why(self) -> None:
        assert table(dealt("dirichlet", 3, column="y", alpha=0.2), 3).sum(axis=1).min() >= 1
        with pytest.raises(Undealable, match="raise alpha"):
            dealt("dirichlet", 40, labels=np.zeros(40, dtype=np.int32), column="y", alpha=0.01)

    def test_shards_give_a_chunk_few_values(self) -> None:
        labels = np.repeat(np.arange(10, dtype=np.int32), 60)
        counts = table(dealt("shards", 10, 5, labels, column="y", shards_per_chunk=2), 10, labels)
        assert counts.sum(axis=1).tolist() == [60] * 10
        assert (counts > 0).sum(axis=1).max() <= 2
        with pytest.raises(Undealable, match="shards"):
            dealt("shards", 5, labels=np.zeros(9, dtype=np.int32), column="y")

    def test_by_column_is_one_value_for_each_chunk(self) -> None:
        assert (dealt("by_column", 3, column="y") == LABELS).all()
        with pytest.raises(Undealable, match="holds 3 different values"):
            dealt("by_column", 4, column="y")

    def test_sizes(self) -> None:
        assert np.bincount(dealt("sizes", 3, proportions=[1, 2, 8])).tolist() == [9, 18, 72]
        with pytest.raises(Undealable, match="chunk 1 without"):
            dealt("sizes", 2, proportions=[1e6, 1])

    @pytest.mark.parametrize(("partitioner", "options"), [
        ("iid", {}), ("stratified", {"column": "y"}), ("dirichlet", {"column": "y"}), ("shards", {"column": "y"}),
        ("sizes", {"proportions": [1, 2, 3]}),
    ])  # fmt: skip
    def test_the_seed_decides(self, partitioner: str, options: dict[str, Any]) -> None:
        first, again, other = (dealt(partitioner, 3, seed, **options) for seed in (1, 1, 2))
        assert (first == again).all()
        assert (first != other).any()

    @pytest.mark.parametrize(("partitioner", "options", "field"), [
        ("stratified", {}, "column"), ("iid", {"column": "y"}, "column"), ("dirichlet", {"column": "y", "alpha": 0}, "alpha"),
        ("shards", {"column": "y", "shards_per_chunk": 0}, "shards_per_chunk"), ("sizes", {"proportions": [1, -1]}, "proportions"),
    ])  # fmt: skip
    def test_bad_options_are_named(self, partitioner: str, options: dict[str, Any], field: str) -> None:
        with pytest.raises(ValidationError, match=field):
            parse_options(partitioner, options)


class TestLabels:
    def labels(self, tmp_path: Path, text: str, column: str) -> list[int]:
        path = tmp_path / "data.csv"
        path.write_bytes(text.encode())
        return read_labels(path, scan(path), column).tolist()

    def test_numbers_are_sorted_by_size_and_words_as_words(self, tmp_path: Path) -> None:
        assert self.labels(tmp_path, "x,y\n10,b\n9,a\n10,c\n", "x") == [1, 0, 1]
        assert self.labels(tmp_path, "x,y\n10,b\n9,a\n10,c\n", "y") == [1, 0, 2]

    def test_quotes_newlines_and_missing_values(self, tmp_path: Path) -> None:
        text = 'x;y\r\n"one\ntwo";\r\n"a;b";NA\r\n"a;b";\r\n'
        assert self.labels(tmp_path, text, "x") == [1, 0, 0]
        assert self.labels(tmp_path, text, "y") == [0, 1, 0]

    def test_two_columns_of_one_name(self, tmp_path: Path) -> None:
        assert self.labels(tmp_path, "y,y\n1,5\n2,4\n", "y") == [0, 1]

    def test_an_unknown_column_is_named_with_those_there_are(self, tmp_path: Path) -> None:
        with pytest.raises(LabelsUnusable, match="no column 'z'; there are: x, y"):
            self.labels(tmp_path, "x,y\n1,2\n", "z")


@pytest.mark.parametrize(("partitioner", "options"), [
    ("stratified", {"column": "y"}), ("dirichlet", {"column": "y", "alpha": 0.3}), ("shards", {"column": "x"}),
    ("sizes", {"proportions": [1, 2, 3]}),
])  # fmt: skip
def test_the_pieces_make_the_file_again(tmp_path: Path, partitioner: str, options: dict[str, Any]) -> None:
    source = tmp_path / "data.csv"
    source.write_bytes(b"x,y\n" + b"".join(b'%d,"v,\n%d"\n' % (n * 7 % 100, n % 4) for n in range(500)))
    done = split(source, scan(source), partitioner, 3, 1, tmp_path / "out", parse_options(partitioner, options).model_dump())
    assert sum(chunk.rows for chunk in done.chunks) == 500
    restore(done.map_path, [chunk.path for chunk in done.chunks], tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == source.read_bytes()
