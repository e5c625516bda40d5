"""Merging against the closed form, in exact arithmetic where it counts."""

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gridx.aggregation import merge as merge_module
from gridx.aggregation import sources
from gridx.aggregation.canonical import NotCanonical
from gridx.aggregation.merge import NoRows, UpdateUnreadable, merge
from gridx.aggregation.precision import narrow, tree_sum
from gridx.aggregation.strategies.base import Block, Strategy, Vector
from gridx.aggregation.strategies.options import UnknownStrategy
from gridx.aggregation.summary import UpdateCaps
from gridx.aggregation.update_file import inspect_update

State = dict[str, torch.Tensor]


def write(folder: Path, states: Sequence[State]) -> list[Path]:
    paths: list[Path] = []
    for number, state in enumerate(states):
        torch.save(state, folder / "raw.pth")
        paths.append(folder / f"update-{number}.pth")
        inspect_update(folder / "raw.pth", paths[-1], UpdateCaps())
    return paths


def merged(folder: Path, states: Sequence[State], rows: Sequence[int]) -> State:
    merge(list(zip(write(folder, states), rows, strict=True)), None, folder / "out.pth")
    return torch.load(folder / "out.pth", weights_only=True)


def exact_mean(columns: Sequence[Sequence[float]], rows: Sequence[int]) -> list[Fraction]:
    total = sum(rows)
    return [sum((Fraction(v) * n for v, n in zip(column, rows, strict=True)), Fraction()) / total for column in columns]


def random_state(seed: int, scale: float = 1.0) -> State:
    generator = torch.Generator().manual_seed(seed)
    return {
        "a": torch.randn(7, 11, generator=generator) * scale,
        "half": torch.randn(13, generator=generator).half(),
        "brain": torch.randn(5, 3, generator=generator).bfloat16(),
        "double": torch.randn(9, generator=generator).double(),
        "bn.running_mean": torch.randn(4, generator=generator),
        "bn.num_batches_tracked": torch.tensor(seed * 10),
        "mask": torch.rand(6, generator=generator) > 0.5,
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(float(seed)),
        "ids": torch.arange(3, dtype=torch.int32) + seed,
    }


class TestFedAvg:
    @settings(max_examples=40, deadline=None)
    @given(data=st.data(), count=st.integers(1, 20))
    def test_float32_is_the_exact_mean_within_one_ulp(
        self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, count: int
    ) -> None:
        folder = tmp_path_factory.mktemp("merge")
        number = st.floats(width=32, allow_nan=False, allow_infinity=False)
        values = data.draw(st.lists(st.lists(number, min_size=3, max_size=3), min_size=count, max_size=count))
        rows = data.draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count).filter(any))
        result = merged(folder, [{"w": torch.tensor(row, dtype=torch.float32)} for row in values], rows)["w"].numpy()
        for found, exact in zip(result, exact_mean(list(zip(*values, strict=True)), rows), strict=True):
            largest = max(abs(v) for row in values for v in row)
            # Cancelling addends leave the rounding of the largest float64 addend, else one ulp of the result.
            tolerance = max(Fraction(float(np.spacing(np.abs(found)))), Fraction(largest) * len(rows) / 2**52)
            assert abs(Fraction(float(found)) - exact) <= tolerance

    @settings(max_examples=60, deadline=None)
    @given(
        values=st.lists(st.floats(2**-9, 512, width=16), min_size=2, max_size=20),
        rows=st.lists(st.integers(1, 1000), min_size=20, max_size=20),
        dtype=st.sampled_from(["float16", "bfloat16"]),
    )
    def test_half_precision_rounds_once(
        self, tmp_path_factory: pytest.TempPathFactory, values: list[float], rows: list[int], dtype: str
    ) -> None:
        kind = getattr(torch, dtype)
        states = [{"w": torch.tensor([value], dtype=kind)} for value in values]
        found = merged(tmp_path_factory.mktemp("merge"), states, rows[: len(values)])["w"]
        exact = exact_mean([[float(state["w"][0]) for state in states]], rows[: len(values)])[0]
        assert found.dtype == kind
        error = abs(Fraction(float(found[0])) - exact)
        # No neighbour is nearer: the result is the mean rounded to nearest.
        bits = found.view(torch.int16)
        for step in (-1, 1):
            neighbour = (bits + step).view(kind)
            assert error <= abs(Fraction(float(neighbour[0])) - exact) * (1 + Fraction(1, 10**9))

    def test_every_kind_of_tensor(self, tmp_path: Path) -> None:
        states = [random_state(seed) for seed in range(1, 4)]
        rows = [10, 20, 30]
        result = merged(tmp_path, states, rows)
        for name, tensor in result.items():
            assert tensor.shape == states[0][name].shape
            assert tensor.dtype == states[0][name].dtype
        stacked = torch.stack([state["double"] for state in states])
        weights = torch.tensor(rows, dtype=torch.float64)[:, None] / 60
        assert torch.allclose(result["double"], (stacked * weights).sum(0), rtol=1e-15)
        assert result["bn.num_batches_tracked"].item() == 23  # (10*10 + 20*20 + 30*30) / 60 = 23.33
        assert result["scalar"].item() == pytest.approx(7 / 3, rel=1e-7)
        votes = sum(n * state["mask"].long() for n, state in zip(rows, states, strict=True))
        assert torch.equal(result["mask"], torch.as_tensor(votes) * 2 > 60)

    def test_integers_stay_exact_where_all_agree(self, tmp_path: Path) -> None:
        large = torch.tensor([2**63 - 1, -(2**63), 2**53 + 1])
        result = merged(tmp_path, [{"n": large}] * 3, [1, 2, 4])
        assert torch.equal(result["n"], large)

    def test_integers_round_half_to_even(self, tmp_path: Path) -> None:
        result = merged(tmp_path, [{"n": torch.tensor([1, 2, -3])}, {"n": torch.tensor([2, 3, -2])}], [5, 5])
        assert result["n"].tolist() == [2, 2, -2]

    def test_a_tie_of_bools_is_false(self, tmp_path: Path) -> None:
        result = merged(tmp_path, [{"m": torch.tensor([True])}, {"m": torch.tensor([False])}], [3, 3])
        assert result["m"].tolist() == [False]

    def test_equal_updates_and_one_update_come_back_bit_for_bit(self, tmp_path: Path) -> None:
        state = random_state(3)
        for count, rows in [(1, [17]), (3, [1, 5, 9]), (20, list(range(1, 21)))]:
            paths = write(tmp_path, [state] * count)
            merge(list(zip(paths, rows, strict=True)), None, tmp_path / "out.pth")
            loaded = torch.load(tmp_path / "out.pth", weights_only=True)
            assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items() if name != "double")
            assert torch.allclose(loaded["double"], state["double"], rtol=4e-16, atol=0)

    def test_largest_values_do_not_overflow(self, tmp_path: Path) -> None:
        state = {"d": torch.tensor([1.7e308, -1.7e308], dtype=torch.float64), "f": torch.tensor([3.4e38])}
        for rows in (list(range(100, 120)), [7] * 20):
            result = merged(tmp_path, [state] * 20, rows)
            assert torch.allclose(result["d"], state["d"], rtol=1e-15)
            assert torch.equal(result["f"], state["f"])

    def test_keys_in_another_order_are_matched_by_name(self, tmp_path: Path) -> None:
        first, second = random_state(1), random_state(2)
        shuffled = dict(reversed(second.items()))
        a = merged(tmp_path, [first, second], [1, 3])
        b = merged(tmp_path, [first, shuffled], [1, 3])
        assert list(a) == list(b)
        assert all(torch.equal(a[name], b[name]) for name in a)


class TestDeterminism:
    def test_same_bytes_on_every_run_and_any_number_of_threads(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = write(tmp_path, [random_state(seed) | {"big": torch.randn(300, 999)} for seed in range(40)])
        updates = [(path, 100 + number) for number, path in enumerate(paths)]
        reports = [merge(updates, paths[0], tmp_path / "a.pth")]
        for cores in (1, 2, 4):
            monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
            reports.append(merge(updates, paths[0], tmp_path / "b.pth"))
        assert all(report == reports[0] for report in reports)
        assert hashlib.sha256((tmp_path / "a.pth").read_bytes()).hexdigest() == reports[0].sha256

    def test_arrival_order_does_not_matter(self, tmp_path: Path) -> None:
        """Files written in another order are passed in subtask order all the same."""
        states = [random_state(seed) for seed in range(5)]
        first = write(tmp_path, states)
        late = tmp_path / "late"
        late.mkdir()
        for number in (3, 0, 4, 1, 2):
            torch.save(states[number], late / "raw.pth")
            inspect_update(late / "raw.pth", late / f"update-{number}.pth", UpdateCaps())
        a = merge([(path, 7 + n) for n, path in enumerate(first)], None, tmp_path / "a.pth")
        b = merge([(late / f"update-{n}.pth", 7 + n) for n in range(5)], None, tmp_path / "b.pth")
        assert a.sha256 == b.sha256

    def test_runs_on_a_process_pool(self, tmp_path: Path) -> None:
        updates = [(path, 1) for path in write(tmp_path, [random_state(1), random_state(2)])]
        with ProcessPoolExecutor(1) as pool:
            there = pool.submit(merge, updates, None, tmp_path / "there.pth").result()
        assert there == merge(updates, None, tmp_path / "here.pth")

    @pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 32, 33, 256, 257, 300])
    def test_the_tree_has_fan_in_sixteen(self, count: int) -> None:
        random = np.random.default_rng(count)
        values, weights = random.standard_normal((count, 5)), random.random(count)

        def tree(terms: list[Vector]) -> Vector:
            if len(terms) <= 16:
                total = terms[0]
                for term in terms[1:]:
                    total = total + term
                return total
            return tree([tree(terms[i : i + 16]) for i in range(0, len(terms), 16)])

        out, scratch = np.empty(5), np.empty(5)
        tree_sum(values, weights, out, scratch)
        assert np.array_equal(out, tree([w * v for w, v in zip(weights, values, strict=True)]))
        tree_sum(values, None, out, scratch)
        assert np.array_equal(out, tree(list(values)))


class TestReport:
    def test_norms_are_the_closed_form(self, tmp_path: Path) -> None:
        states = [random_state(seed) for seed in range(3)]
        paths = write(tmp_path, states)
        rows = [1, 2, 7]
        report = merge(list(zip(paths, rows, strict=True)), paths[1], tmp_path / "out.pth")

        def flat(state: State) -> torch.Tensor:
            return torch.cat([t.double().reshape(-1) for t in state.values() if t.is_floating_point()])

        vectors = torch.stack([flat(state) for state in states])
        mean = (vectors * torch.tensor(rows)[:, None] / 10).sum(0)
        assert report.rows == 10
        assert report.convergence_delta == pytest.approx(float((mean - vectors.mean(0)).norm()))
        assert report.step_norm == pytest.approx(float((mean - vectors[1]).norm()))
        assert report.distances == pytest.approx([float((v - mean).norm()) for v in vectors])

    def test_equal_rows_have_no_delta_and_round_one_no_step(self, tmp_path: Path) -> None:
        report = merge([(path, 5) for path in write(tmp_path, [random_state(1), random_state(2)])], None, tmp_path / "out.pth")
        assert report.convergence_delta == 0.0
        assert report.step_norm is None


class TestRefusals:
    def test_no_rows(self, tmp_path: Path) -> None:
        paths = write(tmp_path, [random_state(1)])
        for updates in ([], [(paths[0], 0)]):
            with pytest.raises(NoRows):
                merge(updates, None, tmp_path / "out.pth")

    @pytest.mark.parametrize("how", ["missing", "empty", "cut", "other model", "text"])
    def test_an_unreadable_update_is_named_and_leaves_nothing(self, tmp_path: Path, how: str) -> None:
        paths = write(tmp_path, [random_state(seed) for seed in range(3)])
        raw = paths[1].read_bytes()
        if how == "missing":
            paths[1].unlink()
        elif how == "other model":
            torch.save({"a": torch.ones(2)}, tmp_path / "raw.pth")
            inspect_update(tmp_path / "raw.pth", paths[1], UpdateCaps())
        else:
            paths[1].write_bytes({"empty": b"", "cut": raw[:-100], "text": b"hello" * 1000}[how])
        with pytest.raises(UpdateUnreadable) as unreadable:
            merge([(path, 1) for path in paths], None, tmp_path / "out.pth")
        assert unreadable.value.index == 1
        assert pickle.loads(pickle.dumps(unreadable.value)).index == 1
        assert not list(tmp_path.glob("*out.pth*"))

    def test_an_update_cut_off_while_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = write(tmp_path, [{"w": torch.ones(500_000)} for _ in range(3)])
        whole = sources.open_updates

        def then_cut(*args: object) -> object:
            opened = whole(*args)  # pyright: ignore[reportArgumentType]
            with paths[2].open("r+b") as file:
                file.truncate(10_000)
            return opened

        monkeypatch.setattr(merge_module, "open_updates", then_cut)
        with pytest.raises(UpdateUnreadable) as unreadable:
            merge([(path, 1) for path in paths], None, tmp_path / "out.pth")
        assert unreadable.value.index == 2
        assert not list(tmp_path.glob("*out.pth*"))

    def test_a_global_model_that_does_not_fit(self, tmp_path: Path) -> None:
        paths = write(tmp_path, [random_state(1), {"x": torch.ones(1)}])
        with pytest.raises(NotCanonical, match="the global model"):
            merge([(paths[0], 1)], paths[1], tmp_path / "out.pth")

    def test_unknown_strategies_and_options(self, tmp_path: Path) -> None:
        updates = [(path, 1) for path in write(tmp_path, [random_state(1)])]
        with pytest.raises(UnknownStrategy, match="fedavg"):
            merge(updates, None, tmp_path / "out.pth", "fedsgd")
        with pytest.raises(ValidationError):
            merge(updates, None, tmp_path / "out.pth", "fedavg", {"mu": 1})


class Momentum(Strategy):
    """A server optimiser by hand: state, previous model, statistics left alone."""

    state_names = ("momentum", "count")

    def combine(self, block: Block) -> Vector:
        assert block.previous is not None
        block.state["momentum"] *= 0.5
        block.state["momentum"] += block.mean - block.previous
        block.state["count"] += 1
        return np.where(block.trainable, block.previous + block.state["momentum"], block.mean)


class TestStrategiesWithState:
    def test_state_goes_from_round_to_round(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(merge_module, "make_strategy", lambda *_: Momentum())
        zeros, ones = ({n: t * 0 for n, t in random_state(1).items()} for _ in range(2))
        ones["big"] = torch.ones(1000, 300)
        zeros["big"] = torch.zeros(1000, 300)
        ones["a"] = torch.ones(7, 11)
        ones["bn.running_mean"] = torch.ones(4)
        previous, update = write(tmp_path, [zeros, ones])
        merge([(update, 1)], previous, tmp_path / "r1.pth", state_out=tmp_path / "s1.pth")
        merge([(update, 1)], previous, tmp_path / "r2.pth", state_in=tmp_path / "s1.pth", state_out=tmp_path / "s2.pth")
        state = torch.load(tmp_path / "s2.pth", weights_only=True)
        assert state["momentum.a"].unique().tolist() == [1.5]
        assert state["momentum.big"].unique().tolist() == [1.5]
        assert state["count.big"].unique().tolist() == [2.0]
        result = torch.load(tmp_path / "r2.pth", weights_only=True)
        assert result["big"].unique().tolist() == [1.5]
        assert result["bn.running_mean"].unique().tolist() == [1.0]


class TestPrecision:
    @given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=50))
    def test_bfloat16_is_rounded_once(self, values: list[float]) -> None:
        wide = np.array(values)
        found = torch.from_numpy(narrow(wide, "bfloat16").view(np.int16)).view(torch.bfloat16)
        for value, bits in zip(wide, found, strict=True):
            if abs(value) < 3.38e38:
                below, above = ((bits.view(torch.int16) + step).view(torch.bfloat16) for step in (-1, 1))
                error = abs(Fraction(float(bits)) - Fraction(float(value)))
                for other in (below, above):
                    if torch.isfinite(other):
                        assert error <= abs(Fraction(float(other)) - Fraction(float(value)))

    def test_the_middle_of_two_bfloat16(self) -> None:
        middle = 1 + 2**-8
        values = np.array([middle, np.nextafter(middle, 2), np.nextafter(middle, 0), -np.nextafter(middle, 2)])
        found = torch.from_numpy(narrow(values, "bfloat16").view(np.int16)).view(torch.bfloat16).tolist()
        assert found == [1.0, 1 + 2**-7, 1.0, -(1 + 2**-7)]


class TestMemory:
    @pytest.mark.parametrize("count", [4, 8, 32])
    def test_peak_stays_under_two_and_a_half_models(self, tmp_path: Path, count: int) -> None:
        """Resident memory beyond that of a merge of a tiny model, in a process of its own."""
        size = 24 << 20
        big = write(tmp_path, [{"w": torch.zeros(size // 4)}])[0]
        tiny = tmp_path / "tiny.pth"
        torch.save({"w": torch.zeros(4)}, tmp_path / "raw.pth")
        inspect_update(tmp_path / "raw.pth", tiny, UpdateCaps())

        def peak(path: Path) -> int:
            code = (
                "import resource, sys\nfrom pathlib import Path\nfrom gridx.aggregation.merge import merge\n"
                f"merge([(Path({str(path)!r}), 1 + i) for i in range({count})], None, Path({str(tmp_path / 'out.pth')!r}))\n"
                "assert 'torch' not in sys.modules\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
            )
            return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout) << 10

        assert peak(big) - peak(tiny) < 2.5 * size
