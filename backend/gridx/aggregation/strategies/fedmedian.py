"""Coordinate-wise median, Yin et al. 2018, "Byzantine-Robust Distributed Learning", Definition 1. Row counts are ignored."""

from typing import TYPE_CHECKING

import numpy as np

from gridx.aggregation.strategies.base import Block, Strategy, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import StrategyOptions


class FedMedian(Strategy):
    """The middle value of each element; of an even number of updates the mean of the two middle ones."""

    def __init__(self, options: "StrategyOptions") -> None:
        self.options = options

    def combine(self, block: Block) -> Vector:
        return np.median(block.values, axis=0)
