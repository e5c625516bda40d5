"""Training on real rows, merged by the product's own splitting and merging: as good as plain averaging elsewhere, and under attack."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from gridx.aggregation.merge import merge
from gridx.aggregation.summary import UpdateCaps
from gridx.aggregation.update_file import inspect_update
from gridx.datasets.csv_records import scan
from gridx.datasets.splitting import split

State = dict[str, torch.Tensor]
Attack = Callable[[State, State], State]
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "breast_cancer"
CHUNKS, ROUNDS, EPOCHS = 5, 5, 5


def flip(update: State, start: State) -> State:
    return {name: start[name] - (value - start[name]) for name, value in update.items()}


def blow_up(update: State, start: State) -> State:
    return {name: start[name] + 1000 * (value - start[name]) for name, value in update.items()}


def push_away(update: State, start: State) -> State:
    """A sign-flipped update, so large that it outweighs four honest ones."""
    return {name: start[name] - 10 * (value - start[name]) for name, value in update.items()}


ATTACKS: dict[str, Attack] = {"sign flipped": flip, "sign flipped, tenfold": push_away, "1000-fold": blow_up}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """The layers are so small that a second thread only waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("breast_cancer_example", EXAMPLE / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory, example: ModuleType) -> list[Any]:
    """(features, labels) of the five chunks, and last of the rows that nobody trains on."""
    folder = tmp_path_factory.mktemp("data")
    whole = folder / "data.csv"
    subprocess.run([sys.executable, str(EXAMPLE / "make_data.py"), str(whole)], check=True, capture_output=True)
    done = split(whole, scan(whole), "iid", CHUNKS + 1, 7, folder / "chunks")
    return [example.read_rows(str(chunk.path)) for chunk in done.chunks]


def local(example: ModuleType, start: State, data: Any, seed: int) -> State:
    """What the example's script does on one chunk, with a seed of its own."""
    features, labels = data
    model = example.build_model()
    model.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    loss_of = torch.nn.BCEWithLogitsLoss()
    generator = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(features), generator=generator).split(16):
            optimizer.zero_grad()
            loss_of(model(features[batch]), labels[batch]).backward()
            optimizer.step()
    return {name: value.clone() for name, value in model.state_dict().items()}


class Federation:
    """The rounds of one job, with the files that the product would have."""

    def __init__(self, folder: Path, example: ModuleType, chunks: list[Any]) -> None:
        self.folder, self.example, self.chunks = folder, example, chunks
        torch.manual_seed(11)
        self.start: State = example.build_model().state_dict()

    def train(self, strategy: str, attack: Attack | None = None) -> list[float]:
        """Accuracy on the held-out rows after each round."""
        model = self.start
        known, state = self._stored("start", model), None
        accuracies: list[float] = []
        for number in range(ROUNDS):
            updates = [local(self.example, model, data, 100 * number + chunk) for chunk, data in enumerate(self.chunks[:CHUNKS])]
            if attack is not None:
                updates[2] = attack(updates[2], model)
            files = [(self._stored(f"{number}-{chunk}", update), len(self.chunks[chunk][0])) for chunk, update in enumerate(updates)]
            out, kept = self.folder / f"global-{number}.pth", self.folder / f"state-{number}"
            merge(files, known, out, strategy, {}, state, kept)
            known, state = out, kept if kept.exists() else None
            model = torch.load(out, weights_only=True)
            accuracies.append(self.accuracy(model))
        return accuracies

    def accuracy(self, state: State) -> float:
        model = self.example.build_model()
        model.load_state_dict(state)
        return self.example.share_right(model, *self.chunks[CHUNKS])

    def _stored(self, name: str, state: State) -> Path:
        torch.save(state, self.folder / "upload")
        inspect_update(self.folder / "upload", self.folder / f"{name}.pth", UpdateCaps())
        return self.folder / f"{name}.pth"


def flowers_aggregate(results: list[tuple[list[Any], int]]) -> list[Any]:
    """Flower's own arithmetic (flwr.server.strategy.aggregate), in the arrays' dtype."""
    total = sum(count for _, count in results)
    weighted = [[layer * count for layer in layers] for layers, count in results]
    return [reduce(np.add, layers) / total for layers in zip(*weighted, strict=True)]


def test_round_by_round_the_accuracies_of_flowers_fedavg(tmp_path: Path, example: ModuleType, chunks: list[Any]) -> None:
    ours = Federation(tmp_path, example, chunks)
    theirs: list[float] = []
    model = ours.start
    for number in range(ROUNDS):
        updates = [local(example, model, data, 100 * number + chunk) for chunk, data in enumerate(chunks[:CHUNKS])]
        results = [([value.numpy() for value in update.values()], len(chunks[chunk][0])) for chunk, update in enumerate(updates)]
        merged = flowers_aggregate(results)
        model = {name: torch.from_numpy(np.asarray(layer, dtype=np.float32)) for name, layer in zip(model, merged, strict=True)}
        theirs.append(ours.accuracy(model))
    assert ours.train("fedavg") == theirs


def test_one_of_five_sends_something_else(
    tmp_path: Path, example: ModuleType, chunks: list[Any], record_property: Callable[[str, object], None]
) -> None:
    federation = Federation(tmp_path, example, chunks)
    clean = federation.train("fedavg")[-1]
    assert clean > 0.9
    found = {name: {"fedavg": federation.train("fedavg", attack)[-1]} for name, attack in ATTACKS.items()}
    for strategy in ("fedmedian", "fedtrimmedavg", "krum", "multikrum"):
        for name, attack in ATTACKS.items():
            found[name][strategy] = federation.train(strategy, attack)[-1]
    record_property("counted", f"held-out accuracy, {clean:.3f} when all are honest: {found}")
    assert found["1000-fold"]["fedavg"] < clean - 0.02
    assert found["sign flipped, tenfold"]["fedavg"] < clean - 0.02
    for name, accuracies in found.items():
        for strategy, accuracy in accuracies.items():
            if strategy != "fedavg":
                assert accuracy >= clean - 0.02, f"{strategy} under {name}: {accuracy}"


@pytest.mark.parametrize("strategy", ["fedavgm", "fedadagrad", "fedadam", "fedyogi", "diloco"])
def test_every_server_optimiser_learns(tmp_path: Path, example: ModuleType, chunks: list[Any], strategy: str) -> None:
    assert Federation(tmp_path, example, chunks).train(strategy)[-1] > 0.85
