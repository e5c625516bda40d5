"""What a deal would look like: counted as the job will deal it, and warned of in words."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridx.datasets.column import read_column
from gridx.datasets.csv_records import scan
from gridx.datasets.deal_preview import preview_deal
from gridx.datasets.labels import read_labels
from gridx.datasets.splitting import split
from tests.backend.conftest import Person

words = st.sampled_from(["a", "b", "", "0", "10", "9", "x y", 'say "hi"', "two\nlines", "é", ","])


def file_of(folder: Path, rows: list[list[Any]], **options: Any) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, **options).writerows(rows)
    path = folder / "data.csv"
    path.write_bytes(text.getvalue().encode())
    return path


def labelled(folder: Path, labels: list[Any]) -> Path:
    return file_of(folder, [["x", "y"], *([number, label] for number, label in enumerate(labels))])


class TestColumn:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.lists(words, min_size=1, max_size=30), st.sampled_from(["\n", "\r\n"]), st.sampled_from([",", ";"]), st.booleans())
    def test_reads_as_pandas_does(self, tmp_path: Path, values: list[str], line_end: str, delimiter: str, is_first: bool) -> None:
        rows = [["y", "x"] if is_first else ["x", "y"], *([value, "1"] if is_first else ["1", value] for value in values)]
        path = file_of(tmp_path, rows, lineterminator=line_end, delimiter=delimiter)
        found = scan(path)
        names, codes = read_column(path, found, "y")
        assert [names[code] for code in codes] == values
        assert codes.tolist() == read_labels(path, found, "y").tolist()

    def test_numbers_are_ordered_by_size(self, tmp_path: Path) -> None:
        path = labelled(tmp_path, [10, 9, 100])
        assert read_column(path, scan(path), "y")[0] == ["9", "10", "100"]


class TestCounts:
    @pytest.mark.parametrize(("partitioner", "options"), [
        ("iid", {}), ("contiguous", {}), ("stratified", {"column": "y"}), ("dirichlet", {"column": "y", "alpha": 0.5}),
        ("shards", {"column": "y", "shards_per_chunk": 2}), ("sizes", {"proportions": [1, 2, 3]}), ("by_column", {"column": "y"}),
    ])  # fmt: skip
    def test_are_those_of_the_job_itself(self, tmp_path: Path, partitioner: str, options: dict[str, Any]) -> None:
        path = labelled(tmp_path, [["c", "a", "b"][number * number % 3 if number > 2 else number] for number in range(60)])
        found = scan(path)
        seen = preview_deal(path, found, partitioner, 3, 7, options, "y")
        done = split(path, found, partitioner, 3, 7, tmp_path / "chunks", options)
        assert seen.sizes == [chunk.rows for chunk in done.chunks]
        assert seen.labels == ["a", "b", "c"]
        for counts, chunk in zip(seen.counts or [], done.chunks, strict=True):
            dealt = [line.split(",")[1] for line in chunk.path.read_text().split()[1:]]
            assert counts == [dealt.count(name) for name in "abc"]


class TestWords:
    def about(self, folder: Path, labels: list[Any], partitioner: str = "iid", chunks: int = 4, **options: Any) -> tuple[str, str | None]:
        path = labelled(folder, labels)
        found = preview_deal(path, scan(path), partitioner, chunks, 1, options, "y")
        return "\n".join(found.warnings), found.proposed

    def test_a_sorted_file_cut_in_order(self, tmp_path: Path) -> None:
        text, proposed = self.about(tmp_path, ["a"] * 50 + ["b"] * 50, "contiguous")
        assert "the file is sorted by 'y'" in text
        assert proposed == "stratified"

    def test_the_same_file_shuffled_is_fine(self, tmp_path: Path) -> None:
        assert self.about(tmp_path, ["a"] * 500 + ["b"] * 500) == ("", None)

    def test_a_rare_class_proposes_the_stratified_partitioner(self, tmp_path: Path) -> None:
        text, proposed = self.about(tmp_path, ["a"] * 200 + ["rare"] * 6)
        assert "class 'rare' is" in text
        assert "stratified by 'y' gives every chunk its share" in text
        assert proposed == "stratified"
        assert self.about(tmp_path, ["a"] * 200 + ["rare"] * 6, "stratified", column="y") == ("", None)

    def test_fewer_rows_than_chunks_cannot_be_helped_by_any(self, tmp_path: Path) -> None:
        text, _ = self.about(tmp_path, ["a"] * 200 + ["rare"] * 2, "stratified", column="y")
        assert "class 'rare' has 2 rows, fewer than the 4 chunks" in text

    def test_what_is_uneven_on_purpose_is_told_and_nothing_else_proposed(self, tmp_path: Path) -> None:
        text, proposed = self.about(tmp_path, [n % 4 for n in range(400)], "by_column", column="y")
        assert "as by_column deals them" in text
        assert proposed is None

    def test_a_chunk_that_counts_little(self, tmp_path: Path) -> None:
        text, _ = self.about(tmp_path, ["a"] * 100, "sizes", 2, proportions=[1, 99])
        assert "chunk 0 has 1 row and chunk 1 has 99 rows" in text

    def test_a_column_of_many_values_is_no_class(self, tmp_path: Path) -> None:
        text, _ = self.about(tmp_path, list(np.arange(200)))
        assert "many different values" in text


class TestRoute:
    @pytest.fixture
    def dataset(self, api: TestClient, log_in: Callable[..., Person]) -> tuple[str, dict[str, str]]:
        headers = log_in().headers
        content = b"x,y\n" + b"".join(b"%d,%s\n" % (n, b"a" if n < 30 else b"b") for n in range(60))
        return f"/datasets/{api.post('/datasets', content=content, headers=headers).json()['id']}/preview", headers

    def test_gives_rows_and_classes_of_each_chunk(self, api: TestClient, dataset: tuple[str, dict[str, str]]) -> None:
        path, headers = dataset
        query: dict[str, Any] = {"chunks": 3, "partitioner": "contiguous", "column": "y"}
        deal = api.get(path, params=query, headers=headers).json()["deal"]
        assert deal["labels"] == ["a", "b"]
        assert deal["chunks"] == [{"chunk": 0, "rows": 20, "labels": [20, 0]}, {"chunk": 1, "rows": 20, "labels": [10, 10]},
                                  {"chunk": 2, "rows": 20, "labels": [0, 20]}]  # fmt: skip
        assert deal["proposed"] == "stratified"
        assert "sorted" in deal["warnings"][0]

    def test_without_chunks_it_shows_the_first_rows_alone(self, api: TestClient, dataset: tuple[str, dict[str, str]]) -> None:
        answer = api.get(dataset[0], headers=dataset[1]).json()
        assert answer["deal"] is None
        assert answer["rows"][0] == ["0", "a"]

    @pytest.mark.parametrize(("query", "words"), [
        ({"chunks": 100}, "60 rows can not be dealt to 100 chunks"), ({"partitioner": "random"}, "'random' is not one of iid"),
        ({"column": "z"}, "column: the dataset has no column 'z'"), ({"partitioner": "stratified"}, "column: "),
        ({"partitioner": "dirichlet", "column": "y", "alpha": 0}, "alpha: "),
        ({"partitioner": "by_column", "column": "y"}, "2 different values"),
        ({"partitioner": "sizes", "proportions": [1, 2]}, "2 numbers for 3 chunks"),
    ])  # fmt: skip
    def test_a_choice_that_cannot_be_is_refused_in_words(
        self, api: TestClient, dataset: tuple[str, dict[str, str]], query: dict[str, Any], words: str
    ) -> None:
        answer = api.get(dataset[0], params={"chunks": 3} | query, headers=dataset[1])
        assert answer.status_code == 422
        assert words in answer.json()["detail"]

    def test_of_a_large_file_only_the_sizes_are_told(
        self, api: TestClient, dataset: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gridx.datasets.router.MOST_BYTES", 10)
        deal = api.get(dataset[0], params={"chunks": 3, "column": "y"}, headers=dataset[1]).json()["deal"]
        assert [chunk["rows"] for chunk in deal["chunks"]] == [20, 20, 20]
        assert "too large" in deal["warnings"][-1]
