"""A server that dies at every point of a job's life, one after another: the next one brings the job to the same end."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.backend.jobs.mortal_life import KILLED, STORIES, Order, Report
from tests.support import databases

_ROOT = Path(__file__).resolve().parents[3]
EXPECTED = {
    "trained": Report("COMPLETED", None, {"buyer": 96, "sellers": 204}, {"1/0": [1], "1/1": [1], "2/0": [1], "2/1": [1]}, {}),
    "cancelled": Report("CANCELLED", None, {"buyer": 99, "sellers": 201}, {"1/0": [1]}, {}),
}


class Lives:
    """Has lives lived, each in a process of its own."""

    def __init__(self, kind: databases.Kind, folder: Path) -> None:
        self._kind: databases.Kind = kind
        self._folder = folder
        command = [sys.executable, "-W", "ignore", "-m", "tests.backend.jobs.mortal_life"]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() == "ready"

    def undisturbed(self, story: str) -> tuple[Report, list[str]]:
        """What the story comes to when nobody dies, and the names of its points."""
        order = self._new(story, "undisturbed", 0)
        self._live(order, 0)
        databases.drop(order.url)
        return self._report(order), (Path(order.home) / "points").read_text().splitlines()

    def with_a_death(self, story: str, die_at: int) -> Report:
        order = self._new(story, str(die_at), die_at)
        self._live(order, KILLED)
        self._live(replace(order, die_at=0, after_death=True), 0)
        databases.drop(order.url)
        return self._report(order)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _new(self, story: str, name: str, die_at: int) -> Order:
        home = self._folder / f"{story}-{name}"
        home.mkdir()
        return Order(story, databases.create(self._kind, home), str(home), die_at, after_death=False)

    def _live(self, order: Order, expected: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        error = Path(order.home) / "error"
        code = int(self._answer())
        assert code == expected, error.read_text() if error.exists() else f"exit code {code}"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _report(self, order: Order) -> Report:
        return Report(**json.loads((Path(order.home) / "report.json").read_text()))


@pytest.fixture
def lives(database_kind: databases.Kind, tmp_path: Path) -> Iterator[Lives]:
    made = Lives(database_kind, tmp_path)
    yield made
    made.close()


@pytest.mark.skipif(os.environ.get("GRIDX_HYPOTHESIS") != "long", reason="minutes long: part of make test-long")
@pytest.mark.slow
@pytest.mark.timeout(1800)
class TestKillMatrix:
    @pytest.mark.parametrize("story", STORIES)
    def test_a_death_at_any_point_changes_nothing(self, lives: Lives, story: str, record_property: Callable[[str, object], None]) -> None:
        whole, points = lives.undisturbed(story)
        expected = EXPECTED[story]
        assert whole.problems == []
        assert (whole.status, whole.credits, whole.payments) == (expected.status, expected.credits, expected.payments)
        kinds = Counter(point.split()[0] for point in points)
        assert {"commit", "move", "put", "place", "delete"} <= set(kinds)
        wrong: list[str] = []
        for number, point in enumerate(points, 1):
            try:
                after = lives.with_a_death(story, number)
            except AssertionError as error:
                wrong.append(f"{number}, before {point}: {error}")
                continue
            wrong += [f"{number}, before {point}: {problem}" for problem in after.problems]
            wrong += [
                f"{number}, before {point}: {name} is {value} instead of {getattr(whole, name)}"
                for name, value in asdict(after).items()
                if name != "problems" and value != getattr(whole, name)
            ]
        print(f"{story}: {len(points)} points of death: {dict(kinds)}")
        record_property("points", len(points))
        assert wrong == []
