"""Coordinate-wise trimmed mean, Yin et al. 2018, "Byzantine-Robust Distributed Learning", Definition 2. Row counts are ignored."""

from typing import TYPE_CHECKING

import numpy as np

from gridx.aggregation.strategies.base import Block, Strategy, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import FedTrimmedAvgOptions


class FedTrimmedAvg(Strategy):
    """The mean of each element without the floor(trim * K) smallest and the as many largest values."""

    def __init__(self, options: "FedTrimmedAvgOptions") -> None:
        self.options = options

    def combine(self, block: Block) -> Vector:
        count = len(block.values)
        cut = int(self.options.trim * count)
        return np.sort(block.values, axis=0)[cut : count - cut].mean(axis=0)
