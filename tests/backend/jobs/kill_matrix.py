"""A server that dies at every point of a job's life, one after another: the next one brings the job to the same end.

The points are every `move()`, every write of the store, and every commit; a test run that is not to be long leaves the commits out.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.backend.jobs.mortal_life import KILLED, STORIES, Order, Report
from tests.support import databases, postgres

_IS_LONG = os.environ.get("GRIDX_HYPOTHESIS") == "long"
_AT_ONCE = 2
"""Lives that go on beside each other, each on a database of its own."""
_ROOT = Path(__file__).resolve().parents[3]
EXPECTED = {
    "trained": Report("COMPLETED", None, {"buyer": 96, "sellers": 204}, {"1/0": [1], "1/1": [1], "2/0": [1], "2/1": [1]}, {}),
    "cancelled": Report("CANCELLED", None, {"buyer": 99, "sellers": 201}, {"1/0": [1]}, {}),
}


class Lives:
    """Has lives lived, each in a process of its own, on one database and one home that are put back before each first life."""

    def __init__(self, kind: databases.Kind, folder: Path) -> None:
        self._url = databases.create(kind, folder)
        self._home, self._home_before = folder / "home", folder / "home-before"
        self._home.mkdir()
        command = [sys.executable, "-W", "ignore", "-m", "tests.backend.jobs.mortal_life", self._url, str(self._home)]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() == "ready"
        shutil.copytree(self._home, self._home_before)
        self._keep_database()

    def rehearse(self, story: str) -> None:
        self._put_back()
        self._live(Order(story, is_rehearsal=True), 0)

    def undisturbed(self, story: str) -> tuple[Report, list[str]]:
        """What the story comes to when nobody dies, and the names of its points."""
        self._put_back()
        self._live(Order(story), 0)
        return self._report(), (self._home / "points").read_text().splitlines()

    def with_a_death(self, story: str, die_at: int) -> Report:
        self._put_back()
        self._live(Order(story, die_at), KILLED)
        self._live(Order(story, after_death=True), 0)
        return self._report()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        databases.drop(self._url)
        if not self._url.startswith("sqlite"):
            databases.drop(f"{self._url}_before")

    def _keep_database(self) -> None:
        if self._url.startswith("sqlite"):
            shutil.copyfile(self._sqlite_file, f"{self._sqlite_file}-before")
        else:
            name = self._url.rpartition("/")[2]
            postgres.cluster().copy(name, f"{name}_before")

    def _put_back(self) -> None:
        shutil.rmtree(self._home)
        shutil.copytree(self._home_before, self._home)
        if self._url.startswith("sqlite"):
            for left in (f"{self._sqlite_file}-wal", f"{self._sqlite_file}-shm"):
                Path(left).unlink(missing_ok=True)
            shutil.copyfile(f"{self._sqlite_file}-before", self._sqlite_file)
        else:
            name = self._url.rpartition("/")[2]
            databases.drop(self._url)
            postgres.cluster().copy(f"{name}_before", name)

    @property
    def _sqlite_file(self) -> str:
        return self._url.removeprefix("sqlite:///")

    def _live(self, order: Order, expected: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        error = self._home / "error"
        answer = self._answer()
        assert answer == str(expected), error.read_text() if error.exists() else f"exit code {answer}"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _report(self) -> Report:
        return Report(**json.loads((self._home / "report.json").read_text()))


@pytest.mark.slow
@pytest.mark.timeout(1800 if _IS_LONG else 900)
class KillMatrix:
    """The proof, for the test module of each database to inherit: pytest-xdist runs a file on one core."""

    kind: databases.Kind

    @pytest.fixture(scope="class")
    def troupe(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lives]]:
        made = [Lives(self.kind, tmp_path_factory.mktemp("lives")) for _ in range(_AT_ONCE)]
        yield made
        for lives in made:
            lives.close()

    @pytest.mark.parametrize("story", STORIES)
    def test_a_death_at_any_point_changes_nothing(
        self, troupe: list[Lives], story: str, record_property: Callable[[str, object], None]
    ) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda lives: lives.rehearse(story), troupe))
            whole, points = troupe[0].undisturbed(story)
            expected = EXPECTED[story]
            assert whole.problems == []
            assert (whole.status, whole.credits, whole.payments) == (expected.status, expected.credits, expected.payments)
            kinds = Counter(point.split()[0] for point in points)
            assert {"commit", "move", "put", "place", "delete"} <= set(kinds)
            deaths = [(number, point) for number, point in enumerate(points, 1) if _IS_LONG or not point.startswith("commit")]
            shares = [deaths[start::_AT_ONCE] for start in range(_AT_ONCE)]
            wrong = list(pool.map(lambda lives, share: _die_each(lives, story, share, whole), troupe, shares))
        died_before = Counter(point.split()[0] for _, point in deaths)
        record_property("counted", f"{len(points)} points, {len(deaths)} deaths, each before a {dict(sorted(died_before.items()))}")
        assert [problem for share in wrong for problem in share] == []


def _die_each(lives: Lives, story: str, deaths: list[tuple[int, str]], whole: Report) -> list[str]:
    """What was wrong after each death."""
    wrong: list[str] = []
    for number, point in deaths:
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
    return wrong
