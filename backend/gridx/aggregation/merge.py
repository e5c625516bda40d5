"""Merges canonical updates into the next global model, by blocks, in float64, with the same bytes every time.

Rules. Floats: what the strategy says, taken in float64 and rounded once to the tensor's dtype. Integers: the
row-weighted mean rounded half to even (BatchNorm's `num_batches_tracked` keeps dtype and shape); equal values stay
exactly. Bools: true where the updates that say so hold more than half of the rows.

The rows are the server's count, never the seller's claim. Files are read by offset, never mapped: memory does not grow
with the models, and little with their number.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridx.aggregation.canonical import CanonicalWriter, plan
from gridx.aggregation.precision import NUMPY, Bytes, Vector, narrow, tree_sum, widen
from gridx.aggregation.sources import Segment, Source, UpdateUnreadable, open_fitting, open_updates
from gridx.aggregation.strategies import make_strategy
from gridx.aggregation.strategies.base import Block, Strategy
from gridx.aggregation.summary import FLOATS, ITEM_BYTES, TensorSpec
from gridx.aggregation.walk import Workspace, in_order

__all__ = ["MergeReport", "NoRows", "UpdateUnreadable", "merge"]

_STATISTICS = (".running_mean", ".running_var")


class NoRows(ValueError):
    """The updates stand for no rows at all: there is nothing to weigh by."""

    def __init__(self) -> None:
        super().__init__("the updates hold 0 rows together; at least one must stand for a row")


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The file at `out` and what the merge measured, all over floating-point elements.

    convergence_delta: L2 norm of (row-weighted mean - uniform mean). step_norm: L2 norm of (result - previous global
    model), None without one. distances: L2 norm of (update - result) for each update, in the order passed. They are
    measures, to six digits or more: differences of float32 tensors are taken in float32.
    """

    sha256: str
    size: int
    rows: int
    convergence_delta: float
    step_norm: float | None
    distances: list[float]
    chosen: list[int] | None = None
    """Where the strategy picks updates: the numbers of those it used, in the order passed."""


def merge(
    updates: Sequence[tuple[Path, int]],
    global_model: Path | None,
    out: Path,
    strategy: str = "fedavg",
    options: dict[str, Any] | None = None,
    state_in: Path | None = None,
    state_out: Path | None = None,
) -> MergeReport:
    """Writes the next global model to `out`, a canonical file, whole or not at all.

    `updates` are (canonical file, rows) in subtask order: the order of the addends. `state_in` and `state_out` are the
    files of a strategy that keeps state; fedavg keeps none and leaves them alone. Everything here can be pickled, so
    that it runs on any concurrent.futures.Executor.
    Raises NoRows, UpdateUnreadable, TooFewUpdates, NotCanonical (the global model or the state), UnknownStrategy,
    ValidationError.
    """
    rows = [count for _, count in updates]
    if any(count < 0 for count in rows):
        raise ValueError("an update can not stand for fewer than 0 rows")
    if sum(rows) == 0:
        raise NoRows
    rule = make_strategy(strategy, options or {})
    with ExitStack() as stack:
        sources = open_updates(stack, [path for path, _ in updates])
        layout = sources[0].layout
        previous = open_fitting(stack, global_model, layout.specs, "the global model")
        state_specs = _state_specs(layout.specs, rule.state_names)
        keeps_state = bool(rule.state_names)
        state = open_fitting(stack, state_in if keeps_state else None, state_specs, "the strategy's state")
        counts = np.array(rows, dtype=np.float64)
        weights, uniform = _Weights.of(rows), _Weights.of([1] * len(rows))
        job = _Job(layout.specs, sources, previous, state, rule, counts, weights, uniform)
        chosen = rule.choose(_squared_distances(job, stack)) if rule.needs_distances else None
        writer = stack.enter_context(CanonicalWriter(out, layout))
        state_writer: CanonicalWriter | None = None
        if keeps_state and state_out is not None:
            state_writer = stack.enter_context(CanonicalWriter(state_out, plan(state_specs), digest=False))
        sums = _Sums(np.zeros(len(updates)))
        for part in in_order(job.specs, len(updates), stack, job.run):
            for index, data in part.outputs:
                writer.write(index, data)
            if state_writer is not None:
                for index, data in part.states:
                    state_writer.write(index, data)
            sums.add(part.sums)
        if state_writer is not None:
            state_writer.close()  # first: a result without its state would be the worse half
        sha256, size = writer.close()
    return MergeReport(
        sha256=sha256,
        size=size,
        rows=sum(rows),
        convergence_delta=math.sqrt(sums.delta),
        step_norm=math.sqrt(sums.step) if previous is not None else None,
        distances=np.sqrt(sums.distances).tolist(),
        chosen=chosen,
    )


@dataclass(frozen=True, slots=True)
class _Weights:
    """Integer weights times a power of two, so that no sum exceeds the largest value: mean = sum(scaled * w) / divisor.

    The products are exact for every dtype but float64.
    """

    scaled: Vector
    divisor: float
    count: int
    equal: bool  # all weigh the same: the plain sum over the count is the same number, and cheaper

    @classmethod
    def of(cls, rows: Sequence[int]) -> "_Weights":
        common = math.gcd(*rows)
        reduced = [count // common for count in rows]
        scale = 2.0 ** -math.ceil(math.log2(sum(reduced)))
        scaled = np.array(reduced, dtype=np.float64) * scale
        return cls(scaled, sum(reduced) * scale, len(rows), equal=all(count == 1 for count in reduced))

    @property
    def contrast(self) -> NDArray[np.float32]:
        """Shape (K,): contrast @ updates = weighted mean - uniform mean."""
        return (self.scaled / self.divisor - 1 / self.count).astype(np.float32)

    def mean(self, values: Vector | NDArray[np.float32], out: Vector, scratch: Vector, *, wide: bool) -> None:
        """Writes the mean over axis 0 to `out`. `wide`: the values may be so large that their plain sum overflows."""
        if self.equal and not wide:
            tree_sum(values, None, out, scratch)
            out /= self.count
        else:
            tree_sum(values, self.scaled, out, scratch)
            out /= self.divisor


@dataclass(slots=True)
class _Sums:
    distances: Vector
    delta: float = 0.0
    step: float = 0.0

    def add(self, other: "_Sums") -> None:
        self.distances += other.distances
        self.delta += other.delta
        self.step += other.step


@dataclass(slots=True)
class _Part:
    """A finished window: (tensor, bytes) to append to the model and to the state, and its share of the sums."""

    outputs: list[tuple[int, memoryview]]
    states: list[tuple[int, memoryview]]
    sums: _Sums


@dataclass(slots=True)
class _Job:
    """Everything the windows share; `run` is called from several threads, each with a workspace."""

    specs: tuple[TensorSpec, ...]
    sources: list[Source]
    previous: Source | None
    state: Source | None
    rule: Strategy
    rows: Vector
    weights: _Weights
    uniform: _Weights

    def run(self, window: list[Segment], space: Workspace) -> _Part:
        """Merges one window; raises UpdateUnreadable, OSError."""
        part = _Part([], [], _Sums(np.zeros(len(self.sources))))
        floats = [segment for segment in window if segment.is_float]
        result: Vector | NDArray[np.float32] | None = None
        if floats and self.rule.is_mean and all(segment.spec.dtype == "float32" for segment in floats):
            result = self._mean_of_singles(floats, space, part)
        if result is None:
            result = self._floats(floats, space, part) if floats else space.mean
        for segment in window:
            if segment.is_float:
                merged = narrow(result[segment.at : segment.at + segment.count], segment.spec.dtype)
            else:
                merged = self._integers(segment, space)
            part.outputs.append((segment.tensor, merged.view(np.uint8).data))
        return part

    def distances(self, window: list[Segment], space: Workspace) -> Vector:
        """The window's share of the squared distances between all updates, shape (K, K), from the differences themselves."""
        count = len(self.sources)
        found = np.zeros((count, count))
        for segment in window:
            if segment.is_float:
                values = space.values[: count * segment.count].reshape(count, segment.count)
                widen(self._read(segment, space), segment.spec.dtype, values)
                for number in range(count - 1):
                    with np.errstate(over="ignore"):
                        away = values[number + 1 :] - values[number]
                        found[number, number + 1 :] += np.minimum(np.einsum("kf,kf->k", away, away), sys.float_info.max / 4)
        return found + found.T

    def _mean_of_singles(self, segments: list[Segment], space: Workspace, part: _Part) -> NDArray[np.float32] | None:
        """`_floats` for float32 and a rule that is the mean: twice as fast. None where a measure overflows float32."""
        size = segments[-1].at + segments[-1].count
        for segment in segments:
            self._read(segment, space, segment.at * 4)
        values = space.raw[:, : size * 4].view(np.float32)
        mean = space.mean[:size]
        self.weights.mean(values, mean, space.scratch[:size], wide=False)
        difference = space.single[:size]
        with np.errstate(over="ignore", invalid="ignore"):
            result = mean.astype(np.float32)
            if not self.weights.equal:
                np.matmul(self.weights.contrast, values, out=difference)
                part.sums.delta = float(np.vecdot(difference, difference))
            if self.previous is not None:
                self._previous(segments, space, size)
                np.subtract(result, space.previous[:size], out=difference)
                part.sums.step = float(np.vecdot(difference, difference))
            np.subtract(values, result, out=values)  # the updates are not needed any more
            part.sums.distances = np.vecdot(values, values).astype(np.float64)
        measured = part.sums.delta + part.sums.step + float(part.sums.distances.sum())
        return result if math.isfinite(measured) else None

    def _floats(self, segments: list[Segment], space: Workspace, part: _Part) -> Vector:
        size = segments[-1].at + segments[-1].count
        values = space.values[: len(self.sources) * size].reshape(len(self.sources), size)
        scratch, mean, uniform = space.scratch[:size], space.mean[:size], space.uniform[:size]
        for segment in segments:
            widen(self._read(segment, space), segment.spec.dtype, values[:, segment.at : segment.at + segment.count])
        previous = self._previous(segments, space, size)
        wide = any(segment.spec.dtype == "float64" for segment in segments)
        self.weights.mean(values, mean, scratch, wide=wide)
        if not self.weights.equal:
            self.uniform.mean(values, uniform, scratch, wide=wide)
            part.sums.delta = _distance(mean, uniform, scratch)
        block = Block(values, self.rows, mean, previous, _trainable(segments, size), self._state(segments, size))
        result = self.rule.combine(block)
        if previous is not None:
            part.sums.step = _distance(result, previous, scratch)
        if np.may_share_memory(result, values):
            result = result.copy()
        np.subtract(values, result, out=values)  # the updates are not needed any more
        with np.errstate(over="ignore"):
            np.minimum(np.einsum("kf,kf->k", values, values), sys.float_info.max, out=part.sums.distances)
        for segment, index, name in self._state_places(segments):
            piece = block.state[name][segment.at : segment.at + segment.count]
            part.states.append((index, piece.view(np.uint8).data))
        return result

    def _read(self, segment: Segment, space: Workspace, at: int = 0) -> Bytes:
        """The segment's bytes from every update, shape (K, bytes), in the workspace from byte `at`; raises UpdateUnreadable."""
        item = ITEM_BYTES[segment.spec.dtype]
        raw = space.raw[:, at : at + segment.count * item]
        for number, source in enumerate(self.sources):
            try:
                source.read(segment.tensor, segment.start * item, raw[number])
            except (OSError, EOFError) as error:
                raise UpdateUnreadable(number, str(error)) from error
        return raw

    def _previous(self, segments: list[Segment], space: Workspace, size: int) -> Vector | None:
        if self.previous is None:
            return None
        for segment in segments:
            item = ITEM_BYTES[segment.spec.dtype]
            raw = space.scratch.view(np.uint8)[: segment.count * item]
            self.previous.read(segment.tensor, segment.start * item, raw)
            widen(raw, segment.spec.dtype, space.previous[segment.at : segment.at + segment.count])
        return space.previous[:size]

    def _state(self, segments: list[Segment], size: int) -> dict[str, Vector]:
        state = {name: np.zeros(size) for name in self.rule.state_names}
        if self.state is not None:
            for segment, index, name in self._state_places(segments):
                target = state[name][segment.at : segment.at + segment.count]
                self.state.read(index, segment.start * 8, target.view(np.uint8))
        return state

    def _state_places(self, segments: list[Segment]) -> Iterator[tuple[Segment, int, str]]:
        """(segment, its tensor's number in the state file, name of the state vector)."""
        names = self.rule.state_names
        if not names:
            return
        floats = [index for index, spec in enumerate(self.specs) if spec.dtype in FLOATS]
        places = {tensor: place for place, tensor in enumerate(floats)}
        for segment in segments:
            for number, name in enumerate(names):
                yield segment, places[segment.tensor] * len(names) + number, name

    def _integers(self, segment: Segment, space: Workspace) -> NDArray[Any]:
        """Row-weighted mean, half to even, shape (n,); what all agree on stays exactly, beyond 2^53 too."""
        stacked = self._read(segment, space).view(NUMPY[segment.spec.dtype])
        mean, scratch = np.empty((2, segment.count))
        self.weights.mean(stacked.astype(np.float64), mean, scratch, wide=True)
        low, high = stacked.min(axis=0), stacked.max(axis=0)
        with np.errstate(invalid="ignore"):  # 2^63 is chosen away below
            rounded = np.rint(mean).astype(stacked.dtype)
        return np.where(mean >= high.astype(np.float64), high, np.where(mean <= low.astype(np.float64), low, rounded))


def _squared_distances(job: _Job, stack: ExitStack) -> Vector:
    count = len(job.sources)
    with np.errstate(over="ignore"):
        total = sum(in_order(job.specs, count, stack, job.distances), np.zeros((count, count)))
    return np.minimum(total, sys.float_info.max / 4)


def _state_specs(specs: Sequence[TensorSpec], names: tuple[str, ...]) -> list[TensorSpec]:
    """A float64 tensor per floating-point tensor and state vector."""
    return [TensorSpec(f"{name}.{spec.name}", "float64", spec.shape) for spec in specs if spec.dtype in FLOATS for name in names]


def _trainable(segments: list[Segment], size: int) -> NDArray[np.bool_]:
    mask = np.ones(size, dtype=np.bool_)
    for segment in segments:
        if segment.spec.name.endswith(_STATISTICS):
            mask[segment.at : segment.at + segment.count] = False
    return mask


def _distance(left: Vector, right: Vector, scratch: Vector) -> float:
    """Sum of squared differences, by einsum: BLAS would start threads of its own."""
    with np.errstate(over="ignore"):
        np.subtract(left, right, out=scratch)
        return min(float(np.einsum("f,f->", scratch, scratch)), sys.float_info.max)
