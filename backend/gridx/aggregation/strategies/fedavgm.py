"""FedAvg with server momentum, Hsu et al. 2019, "Measuring the Effects of Non-Identical Data Distribution", section 4.3."""

from typing import TYPE_CHECKING

from gridx.aggregation.strategies.base import ServerOptimiser, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import FedAvgMOptions


class FedAvgM(ServerOptimiser):
    """v = momentum * v + (w - mean); w = w - server_lr * v."""

    state_names = ("momentum",)

    def __init__(self, options: "FedAvgMOptions") -> None:
        self.options = options

    def step(self, previous: Vector, mean: Vector, state: dict[str, Vector]) -> Vector:
        velocity, rate = state["momentum"], self.options.server_lr
        velocity *= self.options.momentum
        # With rate 1, w - (w - mean) is the mean itself, to the last bit.
        moved = mean - velocity if rate == 1 else previous - rate * (velocity + (previous - mean))
        velocity += previous - mean
        return moved
