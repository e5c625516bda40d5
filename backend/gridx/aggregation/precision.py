"""Model bytes to float64 and back, each rounding once; and sums whose order never changes. Torch-free."""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

FAN_IN: Final = 16

Bytes = NDArray[np.uint8]
Vector = NDArray[np.float64]
NUMPY: Final[dict[str, type[np.generic]]] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,  # its bits
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.uint8,
}


def widen(raw: Bytes, dtype: str, out: Vector) -> None:
    """Writes the floats whose bytes are `raw` to `out`, exactly; one axis more than bytes is kept, (..., n)."""
    if dtype == "bfloat16":  # the upper half of a float32
        np.copyto(out, np.left_shift(raw.view(np.uint16).astype(np.uint32), 16).view(np.float32))
    else:
        np.copyto(out, raw.view(NUMPY[dtype]))


def narrow(values: Vector | NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """`values` rounded once, to nearest and ties to even, to a floating-point dtype; bfloat16 as its uint16 bits."""
    if dtype == "bfloat16":
        return _to_bfloat16(values)
    with np.errstate(over="ignore"):
        return values.astype(NUMPY[dtype])


def _to_bfloat16(values: Vector | NDArray[np.float32]) -> NDArray[np.uint16]:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    bits = single.view(np.uint32)
    # A float64 beside the middle of two bfloat16 may have become that middle: put it back on its side.
    middle = np.flatnonzero((bits & 0xFFFF) == 0x8000)
    if len(middle):
        exact = np.abs(values[middle])
        rounded = np.abs(single[middle].astype(np.float64))
        bits[middle[exact > rounded]] += 1
        bits[middle[exact < rounded]] -= 1
    finite = (bits & 0x7FFFFFFF) < 0x7F800000
    odd = (bits >> 16) & 1
    return np.where(finite, (bits + (0x7FFF + odd)) >> 16, bits >> 16).astype(np.uint16)


def tree_sum(values: Vector | NDArray[np.float32], weights: Vector | None, out: Vector, scratch: Vector) -> None:
    """Writes to `out` (F,) the sum over axis 0 of `values` (K, F), each row times its weight.

    The order is fixed: sixteen consecutive addends from left to right, then sixteen such sums, and so on, so that a
    machine may sum a group for itself. Multiplication and addition round apart, on any processor. `scratch` is (F,).
    Float32 rows are widened first, so that nothing is lost.
    """
    _tree(lambda row, target: _term(values[row], weights, row, target), len(values), out, scratch)


def _term(row: Vector | NDArray[np.float32], weights: Vector | None, number: int, target: Vector) -> Vector:
    """Float64, whatever the row is."""
    if row.dtype == np.float64:
        wide = cast("Vector", row)
    else:
        np.copyto(target, row)  # by itself: a ufunc that widens on the way does it in small pieces, and takes longer
        wide = target
    return wide if weights is None else np.multiply(wide, weights[number], out=target)


def _tree(term: Callable[[int, Vector], Vector], count: int, out: Vector, scratch: Vector) -> None:
    if count > FAN_IN:
        groups = -(-count // FAN_IN)
        sums = np.empty((groups, len(out)))
        for group in range(groups):
            first = group * FAN_IN
            size = min(FAN_IN, count - first)
            _tree(lambda row, target, first=first: term(first + row, target), size, sums[group], scratch)
        _tree(lambda row, _: sums[row], groups, out, scratch)
        return
    first = term(0, out)
    if count == 1:
        np.copyto(out, first)
        return
    np.add(first, term(1, scratch), out=out)
    for row in range(2, count):
        np.add(out, term(row, scratch), out=out)
