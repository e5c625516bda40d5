"""Each strategy against its published formula, written down here once more with NumPy, over several rounds and through files."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from gridx.aggregation.canonical import NotCanonical
from gridx.aggregation.merge import MergeReport, merge
from gridx.aggregation.strategies import STRATEGIES
from gridx.aggregation.strategies.krum import TooFewUpdates
from gridx.aggregation.strategies.options import OPTIONS
from gridx.aggregation.summary import UpdateCaps
from gridx.aggregation.update_file import inspect_update

State = dict[str, torch.Tensor]
ROWS = [30, 31, 29, 40, 25, 33, 28]
ROUNDS = 4


def random_state(seed: int, like: State | None = None) -> State:
    """Layers, a BatchNorm with its statistics and counter; near `like` when given, as an update is near the global model."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    state = {
        "fc.weight": draw(40, 30),
        "fc.bias": draw(40),
        "bn.weight": draw(40),
        "bn.running_mean": draw(40),
        "bn.running_var": draw(40).abs() + 1,
        "bn.num_batches_tracked": torch.tensor(seed + 1),
    }
    if like is not None:
        state = {name: like[name] + 0.1 * value if value.is_floating_point() else value for name, value in state.items()}
    return state


def stored(folder: Path, name: str, state: State) -> Path:
    torch.save(state, folder / f"{name}.raw")
    inspect_update(folder / f"{name}.raw", folder / f"{name}.pth", UpdateCaps())
    return folder / f"{name}.pth"


def play(folder: Path, strategy: str, options: dict[str, Any] | None = None, count: int = 7) -> list[tuple[list[State], State]]:
    """ROUNDS rounds: the updates of each, and what was merged from them."""
    model: Path | None = None
    memory: Path | None = None
    told: list[tuple[list[State], State]] = []
    for number in range(ROUNDS):
        base = told[-1][1] if told else None
        updates = [random_state(100 * number + each, base) for each in range(count)]
        files = [(stored(folder, f"u{number}-{each}", state), ROWS[each]) for each, state in enumerate(updates)]
        out, kept = folder / f"g{number}.pth", folder / f"s{number}"
        merge(files, model, out, strategy, options, memory, kept)
        model, memory = out, kept if kept.exists() else None
        told.append((updates, torch.load(out, weights_only=True)))
    return told


def stacked(updates: list[State], name: str) -> np.ndarray[Any, Any]:
    return np.stack([state[name].double().numpy() for state in updates])


def weighted(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    rows = np.array(ROWS[: len(values)], dtype=float)
    return np.tensordot(rows / rows.sum(), values, axes=1)


class Reference:
    """An optimiser as its paper writes it, element by element, with no care for memory."""

    def __init__(self, step: Callable[[Any, Any, dict[str, Any]], Any]) -> None:
        self.step = step
        self.memory: dict[str, dict[str, Any]] = {}

    def __call__(self, name: str, values: Any, previous: Any) -> Any:
        mean = weighted(values)
        if previous is None or "running" in name:
            return mean
        return self.step(previous, previous - mean, self.memory.setdefault(name, {}))


def fedavgm(rate: float, beta: float) -> Reference:
    def step(w: Any, g: Any, memory: dict[str, Any]) -> Any:
        memory["v"] = beta * memory.get("v", 0.0) + g
        return w - rate * memory["v"]

    return Reference(step)


def nesterov(rate: float, beta: float) -> Reference:
    def step(w: Any, g: Any, memory: dict[str, Any]) -> Any:
        memory["v"] = beta * memory.get("v", 0.0) + g
        return w - rate * (g + beta * memory["v"])

    return Reference(step)


def adaptive(second: Callable[[Any, Any], Any], eta: float, tau: float = 1e-3, beta1: float = 0.9) -> Reference:
    def step(w: Any, g: Any, memory: dict[str, Any]) -> Any:
        memory["m"] = beta1 * memory.get("m", 0.0) + (1 - beta1) * -g
        memory["v"] = second(memory.get("v", tau**2), g * g)
        return w + eta * memory["m"] / (np.sqrt(memory["v"]) + tau)

    return Reference(step)


def squares(updates: list[State]) -> np.ndarray[Any, Any]:
    flat = np.stack([np.concatenate([v.double().numpy().ravel() for v in s.values() if v.is_floating_point()]) for s in updates])
    return ((flat[:, None] - flat[None]) ** 2).sum(-1)


def best(updates: list[State], among: list[int], f: int) -> int:
    distances = squares(updates)
    scores = {i: sum(sorted(distances[i, j] for j in among if j != i)[: max(len(among) - f - 2, 1)]) for i in among}
    return min(among, key=lambda i: (scores[i], i))


def multikrum(updates: list[State], f: int) -> list[int]:
    distances = squares(updates)
    count = len(updates)
    scores = [np.sort(np.delete(distances[i], i))[: count - f - 2].sum() for i in range(count)]
    return sorted(sorted(range(count), key=lambda i: (scores[i], i))[: count - f])


def bulyan(updates: list[State], name: str, f: int) -> Any:
    left, picked = list(range(len(updates))), list[int]()
    while len(picked) < len(updates) - 2 * f:
        picked.append(best(updates, left, f))
        left.remove(picked[-1])
    values = stacked(updates, name)[sorted(picked)]
    middle = np.median(values, axis=0)
    out = np.empty_like(middle)
    for place in itertools.product(*map(range, middle.shape)):
        column = values[(slice(None), *place)]
        out[place] = sorted(column, key=lambda value, at=place: abs(value - middle[at]))[0 : len(picked) - 2 * f] and np.mean(
            sorted(column, key=lambda value, at=place: abs(value - middle[at]))[: len(picked) - 2 * f]
        )
    return out


class TestAgainstThePapers:
    @pytest.mark.parametrize(("strategy", "options", "reference"), [
        ("fedavgm", {}, lambda: fedavgm(1.0, 0.9)),
        ("fedavgm", {"server_lr": 0.5, "momentum": 0.3}, lambda: fedavgm(0.5, 0.3)),
        ("diloco", {}, lambda: nesterov(0.7, 0.9)),
        ("diloco", {"outer_lr": 1.0, "momentum": 0.5}, lambda: nesterov(1.0, 0.5)),
        ("fedadagrad", {}, lambda: adaptive(lambda v, d2: v + d2, 0.1)),
        ("fedadam", {}, lambda: adaptive(lambda v, d2: 0.99 * v + 0.01 * d2, 0.1)),
        ("fedyogi", {}, lambda: adaptive(lambda v, d2: v - 0.01 * d2 * np.sign(v - d2), 0.01)),
        ("fedadam", {"eta": 0.02, "tau": 0.1, "beta1": 0.0}, lambda: adaptive(lambda v, d2: 0.99 * v + 0.01 * d2, 0.02, 0.1, 0.0)),
    ])  # fmt: skip
    def test_server_optimisers(self, tmp_path: Path, strategy: str, options: dict[str, Any], reference: Callable[[], Reference]) -> None:
        expected, previous = reference(), None
        for updates, merged in play(tmp_path, strategy, options):
            for name, value in merged.items():
                if value.is_floating_point():
                    before = None if previous is None else previous[name].double().numpy()
                    wanted = expected(name, stacked(updates, name), before)
                    np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-6, atol=1e-6, err_msg=name)
            previous = merged

    def test_median(self, tmp_path: Path) -> None:
        for updates, merged in play(tmp_path, "fedmedian"):
            np.testing.assert_allclose(merged["fc.weight"].numpy(), np.median(stacked(updates, "fc.weight"), axis=0), rtol=1e-6)

    def test_trimmed_mean(self, tmp_path: Path) -> None:
        for updates, merged in play(tmp_path, "fedtrimmedavg", {"trim": 0.3}):
            ordered = np.sort(stacked(updates, "fc.weight"), axis=0)
            np.testing.assert_allclose(merged["fc.weight"].numpy(), ordered[2:5].mean(axis=0), rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("f", [0, 1, 2])
    def test_krum_is_one_of_the_updates(self, tmp_path: Path, f: int) -> None:
        for updates, merged in play(tmp_path, "krum", {"f": f}):
            wanted = updates[best(updates, list(range(7)), f)]
            for name, value in merged.items():
                if value.is_floating_point():
                    assert torch.equal(value, wanted[name]), name

    def test_multikrum(self, tmp_path: Path) -> None:
        for updates, merged in play(tmp_path, "multikrum", {"f": 2}):
            wanted = stacked(updates, "fc.weight")[multikrum(updates, 2)].mean(axis=0)
            np.testing.assert_allclose(merged["fc.weight"].numpy(), wanted, rtol=1e-6, atol=1e-7)

    def test_bulyan(self, tmp_path: Path) -> None:
        for updates, merged in play(tmp_path, "bulyan", {"f": 1}):
            for name in ("fc.weight", "bn.running_mean"):
                np.testing.assert_allclose(merged[name].numpy(), bulyan(updates, name, 1), rtol=1e-6, atol=1e-6)


class TestIdentities:
    @pytest.mark.parametrize(("strategy", "options"), [
        ("fedprox", {"mu": 0.0}), ("fedprox", {"mu": 5.0}),
        ("fedavgm", {"server_lr": 1.0, "momentum": 0.0}), ("diloco", {"outer_lr": 1.0, "momentum": 0.0}),
    ])  # fmt: skip
    def test_equal_to_fedavg_to_the_last_byte(self, tmp_path: Path, strategy: str, options: dict[str, Any]) -> None:
        for folder in ("plain", "other"):
            (tmp_path / folder).mkdir()
        plain = play(tmp_path / "plain", "fedavg")
        other = play(tmp_path / "other", strategy, options)
        assert (tmp_path / "plain" / f"g{ROUNDS - 1}.pth").read_bytes() == (tmp_path / "other" / f"g{ROUNDS - 1}.pth").read_bytes()
        assert len(plain) == len(other)

    def test_trimming_nothing_is_the_uniform_mean(self, tmp_path: Path) -> None:
        for updates, merged in play(tmp_path, "fedtrimmedavg", {"trim": 0.0}):
            np.testing.assert_allclose(merged["fc.weight"].numpy(), stacked(updates, "fc.weight").mean(axis=0), rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("strategy", ["fedmedian", "fedtrimmedavg", "fedavg"])
    def test_of_one_it_is_the_one(self, tmp_path: Path, strategy: str) -> None:
        for updates, merged in play(tmp_path, strategy, count=1):
            assert all(torch.equal(merged[name], updates[0][name]) for name in merged)

    @pytest.mark.parametrize("strategy", sorted(STRATEGIES))
    def test_statistics_keep_their_kind(self, tmp_path: Path, strategy: str) -> None:
        _, merged = play(tmp_path, strategy)[-1]
        assert merged["bn.num_batches_tracked"].dtype == torch.int64
        assert merged["bn.num_batches_tracked"].shape == ()
        assert bool((merged["bn.running_var"] > 0).all())

    @pytest.mark.parametrize("strategy", sorted(STRATEGIES))
    def test_twice_the_same_bytes(self, tmp_path: Path, strategy: str) -> None:
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            play(tmp_path / folder, strategy)
        for number in range(ROUNDS):
            assert (tmp_path / "a" / f"g{number}.pth").read_bytes() == (tmp_path / "b" / f"g{number}.pth").read_bytes()


class TestOptions:
    def test_every_strategy_has_options_and_a_rule(self) -> None:
        assert set(OPTIONS) == set(STRATEGIES)

    @pytest.mark.parametrize(("strategy", "options", "field"), [
        ("fedprox", {"mu": -1}, "mu"), ("fedavgm", {"momentum": 1.0}, "momentum"), ("fedadam", {"eta": 0}, "eta"),
        ("fedyogi", {"tau": 0}, "tau"), ("fedtrimmedavg", {"trim": 0.5}, "trim"), ("krum", {"f": -1}, "f"), ("fedavg", {"mu": 1}, "mu"),
        ("diloco", {"local_steps": 0}, "local_steps"), ("fedadagrad", {"beta1": float("nan")}, "beta1"),
    ])  # fmt: skip
    def test_what_is_out_of_range_is_named(self, tmp_path: Path, strategy: str, options: dict[str, Any], field: str) -> None:
        path = stored(tmp_path, "u", random_state(1))
        with pytest.raises(ValidationError, match=field):
            merge([(path, 1)], None, tmp_path / "out.pth", strategy, options)

    @pytest.mark.parametrize(("strategy", "needed"), [("krum", 5), ("multikrum", 5), ("bulyan", 7)])
    def test_too_few_updates_to_tell(self, tmp_path: Path, strategy: str, needed: int) -> None:
        files = [(stored(tmp_path, f"u{each}", random_state(each)), 1) for each in range(needed - 1)]
        with pytest.raises(TooFewUpdates, match=f"needs {needed} updates"):
            merge(files, None, tmp_path / "out.pth", strategy)


class TestRobust:
    """One of seven sends something else: what the rules are for."""

    @pytest.mark.parametrize("strategy", ["fedmedian", "fedtrimmedavg", "krum", "multikrum", "bulyan"])
    @pytest.mark.parametrize("attack", [lambda value: -value, lambda value: 1000 * value, lambda value: value + 1e30])
    def test_the_result_stays_among_the_honest(self, tmp_path: Path, strategy: str, attack: Callable[[Any], Any]) -> None:
        honest = [random_state(each, random_state(99)) for each in range(6)]
        bad = {name: attack(value) if value.is_floating_point() else value for name, value in honest[0].items()}
        report = merged_report(tmp_path, strategy, [*honest[:3], bad, *honest[3:]])
        merged = torch.load(tmp_path / "out.pth", weights_only=True)
        values = stacked(honest, "fc.weight")
        spread = np.abs(values - values.mean(axis=0)).max()
        assert np.abs(merged["fc.weight"].double().numpy() - values.mean(axis=0)).max() <= spread + 1e-6
        if report.chosen is not None:
            assert 3 not in report.chosen


def merged_report(folder: Path, strategy: str, states: list[State]) -> MergeReport:
    files = [(stored(folder, f"u{each}", state), ROWS[each]) for each, state in enumerate(states)]
    return merge(files, None, folder / "out.pth", strategy)


def test_a_state_of_another_strategy_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, "u", random_state(1))
    merge([(path, 1)], path, tmp_path / "a.pth", "fedadam", None, None, tmp_path / "state")
    with pytest.raises(NotCanonical, match="state"):
        merge([(path, 1)], path, tmp_path / "b.pth", "fedavgm", None, tmp_path / "state", tmp_path / "state2")
