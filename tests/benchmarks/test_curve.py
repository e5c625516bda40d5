"""The pure parts of `make paper`: when a target was reached, and going on after an interruption."""

from pathlib import Path

import pytest

from benchmarks.paper.curve import Curve, crossing


class TestCrossing:
    @pytest.mark.parametrize(
        ("accuracies", "target", "rounds"),
        [
            ([0.5, 0.9, 1.0], 0.9, 2.0),  # exactly at a round
            ([0.5, 0.9, 1.0], 0.7, 1.5),  # between two
            ([0.8], 0.4, 0.5),  # in the first round, from nothing
            ([0.5, 0.8, 0.6, 0.9], 0.85, 3.5),  # from the best so far, not from the last
            ([0.9, 0.1, 0.1], 0.9, 1.0),  # the first time counts
            ([0.5, 0.6], 0.7, None),
            ([], 0.7, None),
        ],
    )
    def test_interpolates_the_best_so_far(self, accuracies: list[float], target: float, rounds: float | None) -> None:
        assert crossing(accuracies, target) == (None if rounds is None else pytest.approx(rounds))


class TestResume:
    def test_goes_on_with_the_rounds_that_were_kept(self, tmp_path: Path) -> None:
        path, settings = tmp_path / "run.json", {"cell": "2NN", "seed": 1, "seeds": (1, 2)}
        curve = Curve.resume(path, settings)
        curve.add(0.5, 1.0, "aa")
        curve.add(0.75, 2.0, "bb")
        again = Curve.resume(path, settings)
        assert (again.accuracies, again.seconds, again.model) == ([0.5, 0.75], 3.0, "bb")
        again.add(0.8, 1.0, "cc")
        assert Curve.resume(path, settings).accuracies == [0.5, 0.75, 0.8]

    def test_begins_anew_with_other_settings(self, tmp_path: Path) -> None:
        Curve.resume(tmp_path / "run.json", {"rate": 0.1}).add(0.5, 1.0, "aa")
        assert Curve.resume(tmp_path / "run.json", {"rate": 0.2}).accuracies == []

    def test_a_round_is_kept_whole_or_not_at_all(self, tmp_path: Path) -> None:
        path = tmp_path / "run.json"
        Curve.resume(path, {}).add(0.5, 1.0, "aa")
        path.with_suffix(".new").write_text('{"settings": {}, "accu')  # killed while it wrote the next one
        assert Curve.resume(path, {}).accuracies == [0.5]
