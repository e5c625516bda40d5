"""Simulated federated training: an interrupted run ends with the same bytes, and the product's code deals and merges."""

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from benchmarks.paper.federated import Federation, LocalTraining, Rows, convolutional, deal, two_layers

TRAINING = LocalTraining(0.1, 5)


def small() -> nn.Module:
    return nn.Linear(784, 10)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> list[Rows]:
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (60, 784), dtype=np.uint8)
    return deal(pixels, np.arange(60, dtype=np.uint8) % 10, 3, 1, tmp_path_factory.mktemp("deal"))


class TestDeal:
    def test_every_row_goes_to_one_client(self, clients: list[Rows]) -> None:
        assert [len(digits) for _, digits in clients] == [20, 20, 20]
        assert sorted(digit for _, digits in clients for digit in digits.tolist()) == sorted(list(range(10)) * 6)
        assert {(pixels.min() >= 0).item() and (pixels.max() <= 1).item() for pixels, _ in clients} == {True}


class TestFederation:
    @pytest.mark.parametrize("strategy", ["fedavg", "diloco"])
    def test_one_that_goes_on_after_a_kill_reaches_the_same_bytes(self, tmp_path: Path, clients: list[Rows], strategy: str) -> None:
        whole, broken = Federation(tmp_path / "a", small, 1, strategy), Federation(tmp_path / "b", small, 1, strategy)
        for federation in (whole, broken):
            federation.start()
            federation.round(1, clients, [0, 1], TRAINING)
        sha256 = whole.accept()
        assert broken.next_sha256 == sha256  # the round was noted, its model not yet taken over
        resumed = Federation(tmp_path / "b", small, 1, strategy)
        assert resumed.go_on_from(sha256)
        for federation in (whole, resumed):
            federation.round(2, clients, [1, 2], TRAINING)
        assert whole.accept() == resumed.accept()

    def test_without_the_noted_model_there_is_no_going_on(self, tmp_path: Path) -> None:
        federation = Federation(tmp_path, small, 1)
        assert not federation.go_on_from(None)
        federation.start()
        assert not federation.go_on_from("0" * 64)

    def test_learns(self, tmp_path: Path, clients: list[Rows]) -> None:
        federation = Federation(tmp_path, small, 1)
        federation.start()
        before = federation.accuracy(clients[0])
        for number in range(1, 6):
            federation.round(number, clients, [0, 1, 2], TRAINING)
            federation.accept()
        assert federation.accuracy(clients[0]) > max(before, 0.5)


class TestModels:
    def test_have_the_paper_s_sizes(self) -> None:
        sizes = [sum(weights.numel() for weights in build().parameters()) for build in (two_layers, convolutional)]
        assert sizes == [199_210, 1_663_370]
