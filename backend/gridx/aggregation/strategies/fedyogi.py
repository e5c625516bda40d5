"""FedYogi, Reddi et al. 2021, "Adaptive Federated Optimization", Algorithm 2."""

import numpy as np

from gridx.aggregation.strategies.adaptive import Adaptive
from gridx.aggregation.strategies.base import Vector


class FedYogi(Adaptive):
    """v = v - (1 - beta2) * d^2 * sign(v - d^2)."""

    def second_moment(self, second: Vector, squared: Vector) -> Vector:
        return second - (1 - self.options.beta2) * squared * np.sign(second - squared)
