"""Federated Averaging, McMahan et al. 2017, "Communication-Efficient Learning of Deep Networks", Algorithm 1."""

from gridx.aggregation.strategies.base import Block, Vector
from gridx.aggregation.strategies.options import FedAvgOptions


class FedAvg:
    """w = sum over k of n_k / N * w_k."""

    is_mean = True
    state_names: tuple[str, ...] = ()

    def __init__(self, options: FedAvgOptions) -> None:
        self.options = options

    def combine(self, block: Block) -> Vector:
        return block.mean
