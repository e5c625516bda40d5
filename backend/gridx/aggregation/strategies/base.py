"""What a merging rule is: a function over blocks of the flattened floats of all updates."""

from dataclasses import dataclass, field
from typing import Protocol

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


class Strategy(Protocol):
    """One merging rule with its options. Integers and bools are not its business: `merge` has one rule for them."""

    @property
    def is_mean(self) -> bool:
        """Whether the result is always the row-weighted mean: `merge` then need not ask, and is faster."""
        ...

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the vectors kept from round to round; zeros at first."""
        ...

    def combine(self, block: Block) -> Vector:
        """The new global elements, shape (F,), float64; may be one of the block's own arrays."""
        ...
