"""Federated Averaging, McMahan et al. 2017, "Communication-Efficient Learning of Deep Networks", Algorithm 1."""

from typing import TYPE_CHECKING

from gridx.aggregation.strategies.base import Block, Strategy, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import StrategyOptions


class FedAvg(Strategy):
    """w = sum over k of n_k / N * w_k."""

    is_mean = True

    def __init__(self, options: "StrategyOptions | None" = None) -> None:
        self.options = options

    def combine(self, block: Block) -> Vector:
        return block.mean
