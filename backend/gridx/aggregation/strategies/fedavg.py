"""Federated Averaging, McMahan et al. 2017, "Communication-Efficient Learning of Deep Networks", Algorithm 1."""

from gridx.aggregation.strategies.base import Block, Strategy, Vector
from gridx.aggregation.strategies.options import StrategyOptions


class FedAvg(Strategy):
    """w = sum over k of n_k / N * w_k."""

    is_mean = True

    def __init__(self, options: StrategyOptions) -> None:
        self.options = options

    def combine(self, block: Block) -> Vector:
        return block.mean
