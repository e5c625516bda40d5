"""FedAdagrad, Reddi et al. 2021, "Adaptive Federated Optimization", Algorithm 2."""

from gridx.aggregation.strategies.adaptive import Adaptive
from gridx.aggregation.strategies.base import Vector


class FedAdagrad(Adaptive):
    """v = v + d^2."""

    def second_moment(self, second: Vector, squared: Vector) -> Vector:
        return second + squared
