"""Bulyan, El Mhamdi et al. 2018, "The Hidden Vulnerability of Distributed Learning in Byzantium", section 4, over Krum."""

import numpy as np

from gridx.aggregation.strategies.base import Block, Vector
from gridx.aggregation.strategies.krum import MultiKrum, TooFewUpdates, krum_scores


class Bulyan(MultiKrum):
    """Krum picks K - 2f updates, one after the other; of each element, the K - 4f values nearest to their median are averaged."""

    def choose(self, distances: Vector) -> list[int]:
        count, f = len(distances), self.options.f
        if count < self.options.least_updates():
            raise TooFewUpdates(self.options.least_updates(), count)
        left = list(range(count))
        picked: list[int] = []
        while len(picked) < count - 2 * f:
            scores = krum_scores(distances[np.ix_(left, left)], f) if len(left) > 1 else np.zeros(1)
            picked.append(left.pop(int(np.argmin(scores))))
        self.chosen = sorted(picked)
        return self.chosen

    def combine(self, block: Block) -> Vector:
        values = block.values[self.chosen]
        kept = len(values) - 2 * self.options.f
        nearest = np.argsort(np.abs(values - np.median(values, axis=0)), axis=0, kind="stable")[:kept]
        return np.take_along_axis(values, nearest, axis=0).mean(axis=0)
