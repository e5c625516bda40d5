"""What is known of an update or a model, as plain values: this module imports neither torch nor NumPy."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

# Bytes per element of every dtype that may lie in a model, by torch's name.
ITEM_BYTES: Final[dict[str, int]] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
FLOATS: Final = frozenset({"float64", "float32", "float16", "bfloat16"})


class UpdateRefused(ValueError):
    """The upload is no usable update. `code` is stable, `detail` is for the seller and the buyer."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(detail)

    def __reduce__(self) -> tuple[type["UpdateRefused"], tuple[str, str]]:
        return type(self), (self.code, self.detail)


@dataclass(frozen=True, slots=True)
class UpdateCaps:
    """Limits on one upload. Sizes in bytes, times in seconds."""

    max_bytes: int = 1 << 30  # of the upload, and of the tensors in it
    max_pickle_bytes: int = 8 << 20  # of data.pkl; a tensor takes some 200 bytes there
    max_tensors: int = 20_000
    max_name_length: int = 512
    memory_bytes: int | None = None  # on top of what a process with torch maps; None: from the upload's size
    cpu_s: int = 60


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One named tensor: torch's dtype name ("float32") and its shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class UpdateSummary:
    """A canonical file. `sha256` and `size` are the file's; `signature` is equal for equal names, dtypes and shapes.

    `parameters` counts elements of floating-point tensors, BatchNorm's statistics included.
    """

    sha256: str
    size: int
    tensors: tuple[TensorSpec, ...]
    signature: str
    parameters: int

    @classmethod
    def of(cls, sha256: str, size: int, tensors: Sequence[TensorSpec]) -> "UpdateSummary":
        return cls(
            sha256=sha256,
            size=size,
            tensors=tuple(tensors),
            signature=signature(tensors),
            parameters=sum(spec.numel for spec in tensors if spec.dtype in FLOATS),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "UpdateSummary":
        """The inverse of `to_json`, also after a journey through JSON text."""
        tensors = tuple(TensorSpec(t["name"], t["dtype"], tuple(t["shape"])) for t in value["tensors"])
        fields: dict[str, Any] = {**value, "tensors": tensors}
        return cls(**fields)


def signature(tensors: Sequence[TensorSpec]) -> str:
    """SHA-256 (hex) of names, dtypes and shapes, whatever their order."""
    rows = sorted((spec.name, spec.dtype, list(spec.shape)) for spec in tensors)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
