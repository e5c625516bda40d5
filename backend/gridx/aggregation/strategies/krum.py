"""Krum and Multi-Krum, Blanchard et al. 2017, "Machine Learning with Adversaries", sections 4 and 5. Row counts are ignored."""

from typing import TYPE_CHECKING

import numpy as np

from gridx.aggregation.strategies.base import Block, Strategy, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import KrumOptions


class TooFewUpdates(ValueError):
    """The rule cannot tell right from wrong among so few."""

    def __init__(self, needed: int, given: int) -> None:
        self.needed, self.given = needed, given
        super().__init__(f"with this f the rule needs {needed} updates and has {given}; lower f, or use more chunks")

    def __reduce__(self) -> tuple[type["TooFewUpdates"], tuple[int, int]]:
        return type(self), (self.needed, self.given)


class MultiKrum(Strategy):
    """The mean of the K - f updates with the lowest scores. A score sums the squared distances to the K - f - 2 nearest others."""

    needs_distances = True

    def __init__(self, options: "KrumOptions") -> None:
        self.options = options
        self.chosen: list[int] = []

    def choose(self, distances: Vector) -> list[int]:
        count = len(distances)
        if count < self.options.least_updates():
            raise TooFewUpdates(self.options.least_updates(), count)
        scores = krum_scores(distances, self.options.f)
        self.chosen = sorted(np.argsort(scores, kind="stable")[: self.how_many(count)].tolist())
        return self.chosen

    def how_many(self, count: int) -> int:
        return count - self.options.f

    def combine(self, block: Block) -> Vector:
        return block.values[self.chosen].mean(axis=0)


class Krum(MultiKrum):
    """The one update with the lowest score."""

    def how_many(self, count: int) -> int:
        return 1


def krum_scores(distances: Vector, f: int) -> Vector:
    """Shape (K,), from squared distances of shape (K, K)."""
    nearest = max(len(distances) - f - 2, 1)
    others = np.sort(distances + np.diag(np.full(len(distances), np.inf)), axis=1)
    return others[:, :nearest].sum(axis=1)
