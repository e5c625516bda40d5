"""FedAdam, Reddi et al. 2021, "Adaptive Federated Optimization", Algorithm 2: without bias correction, as published."""

from gridx.aggregation.strategies.adaptive import Adaptive
from gridx.aggregation.strategies.base import Vector


class FedAdam(Adaptive):
    """v = beta2 * v + (1 - beta2) * d^2."""

    def second_moment(self, second: Vector, squared: Vector) -> Vector:
        return self.options.beta2 * second + (1 - self.options.beta2) * squared
