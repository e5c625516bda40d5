"""DiLoCo, Douillard et al. 2023, "Distributed Low-Communication Training of Language Models", Algorithm 1."""

from typing import TYPE_CHECKING

from gridx.aggregation.strategies.base import ServerOptimiser, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import DiLoCoOptions


class DiLoCo(ServerOptimiser):
    """Nesterov SGD as PyTorch has it, on g = w - mean: v = momentum * v + g; w = w - outer_lr * (g + momentum * v)."""

    state_names = ("momentum",)

    def __init__(self, options: "DiLoCoOptions") -> None:
        self.options = options

    def step(self, previous: Vector, mean: Vector, state: dict[str, Vector]) -> Vector:
        velocity, rate, momentum = state["momentum"], self.options.outer_lr, self.options.momentum
        gradient = previous - mean
        velocity *= momentum
        velocity += gradient
        # With rate 1, w - g is the mean itself, to the last bit.
        return mean - momentum * velocity if rate == 1 else previous - rate * (gradient + momentum * velocity)
