"""What a merging rule is: a function over blocks of the flattened floats of all updates."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(slots=True)
class Block:
    """The same F consecutive floating-point elements of all K updates, in float64.

    values: shape (K, F), in the caller's order. rows: shape (K,), what the server counted. mean: shape (F,), the
    row-weighted mean. previous: the global model's elements, shape (F,), None in round 1 without an initial model.
    state: the strategy's own vectors, shape (F,) each, to be changed in place. trainable: shape (F,), False for
    statistics (BatchNorm's running mean and variance), which a server optimiser averages instead of stepping.
    """

    values: Vector
    rows: Vector
    mean: Vector
    previous: Vector | None
    trainable: NDArray[np.bool_]
    state: dict[str, Vector] = field(default_factory=dict[str, Vector])


class Strategy:
    """One merging rule with its options. Integers and bools are not its business: `merge` has one rule for them."""

    is_mean: bool = False
    """Whether the result is always the row-weighted mean: `merge` then need not ask, and is faster."""
    state_names: tuple[str, ...] = ()
    """Names of the vectors kept from round to round; zeros at first."""
    needs_distances: bool = False
    """Whether `choose` must be called before the first `combine`."""

    def choose(self, distances: Vector) -> list[int]:
        """Looks at the squared L2 distances between all updates, shape (K, K); the numbers of those it will use."""
        return list(range(len(distances)))

    def combine(self, block: Block) -> Vector:
        """The new global elements, shape (F,), float64; may be one of the block's own arrays."""
        raise NotImplementedError


class ServerOptimiser(Strategy):
    """Takes (global model - mean) for a gradient and steps the trainable elements; statistics are averaged.

    In round 1 without an initial model there is no such gradient: the result is the mean.
    """

    def combine(self, block: Block) -> Vector:
        if block.previous is None:
            return block.mean
        stepped = self.step(block.previous, block.mean, block.state)
        if block.trainable.all():
            return stepped
        for vector in block.state.values():
            vector[~block.trainable] = 0.0
        return np.where(block.trainable, stepped, block.mean)

    def step(self, previous: Vector, mean: Vector, state: dict[str, Vector]) -> Vector:
        """The new elements from the old ones and the mean, all of shape (F,); changes `state` in place."""
        raise NotImplementedError
