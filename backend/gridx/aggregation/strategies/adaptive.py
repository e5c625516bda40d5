"""Adaptive server optimisers, Reddi et al. 2021, "Adaptive Federated Optimization", Algorithm 2; its v starts at tau^2."""

from typing import TYPE_CHECKING

import numpy as np

from gridx.aggregation.strategies.base import ServerOptimiser, Vector

if TYPE_CHECKING:
    from gridx.aggregation.strategies.options import AdaptiveOptions


class Adaptive(ServerOptimiser):
    """d = mean - w; m = beta1 * m + (1 - beta1) * d; v by the rule; w = w + eta * m / (sqrt(v) + tau)."""

    state_names = ("first", "second")

    def __init__(self, options: "AdaptiveOptions") -> None:
        self.options = options

    def step(self, previous: Vector, mean: Vector, state: dict[str, Vector]) -> Vector:
        options = self.options
        delta = mean - previous
        first, above = state["first"], state["second"]  # the latter is v - tau^2, so that it may start at 0 as all state does
        first *= options.beta1
        first += (1 - options.beta1) * delta
        second = self.second_moment(above + options.tau**2, delta**2)
        np.subtract(second, options.tau**2, out=above)
        return previous + options.eta * first / (np.sqrt(second) + options.tau)

    def second_moment(self, second: Vector, squared: Vector) -> Vector:
        """The new v from the old one and d^2."""
        raise NotImplementedError
