"""Canonical files opened for reading by offset, and the windows in which a merge walks through them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gridx.aggregation.canonical import Layout, NotCanonical, read_layout
from gridx.aggregation.precision import Bytes
from gridx.aggregation.summary import FLOATS, TensorSpec, signature

_OPEN_FILES: Final = 400


class UpdateUnreadable(ValueError):
    """Update `index` (as passed) can not be merged; the caller may drop it and merge the rest."""

    def __init__(self, index: int, reason: str) -> None:
        self.index = index
        self.reason = reason
        super().__init__(f"update {index} can not be read: {reason}")

    def __reduce__(self) -> tuple[type["UpdateUnreadable"], tuple[int, str]]:
        return type(self), (self.index, self.reason)


@dataclass(slots=True)
class Source:
    """One canonical file; `offsets` by tensor, in the order of the first update. `fd` None: opened for each read."""

    path: Path
    fd: int | None
    layout: Layout
    offsets: tuple[int, ...]

    def read(self, tensor: int, start: int, into: Bytes) -> None:
        """Fills `into` from byte `start` of a tensor; raises OSError, EOFError."""
        view = into.data
        offset = self.offsets[tensor] + start
        fd = self.fd if self.fd is not None else os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while view:
                count = os.preadv(fd, [view], offset)
                if count == 0:
                    raise EOFError("the file is cut off")
                view = view[count:]
                offset += count
        finally:
            if self.fd is None:
                os.close(fd)


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` elements of a tensor from element `start` on; for floats, `at` is their place in a window's vectors."""

    tensor: int
    spec: TensorSpec
    start: int
    count: int
    at: int

    @property
    def is_float(self) -> bool:
        return self.spec.dtype in FLOATS


def open_updates(stack: ExitStack, paths: Sequence[Path]) -> list[Source]:
    """All updates, aligned to the first one's tensors; raises UpdateUnreadable. `stack` closes them."""
    sources: list[Source] = []
    for index, path in enumerate(paths):
        try:
            source = _open(stack, path, keep_open=len(paths) <= _OPEN_FILES)
            if sources:
                _align(source, sources[0].layout.specs)
        except (OSError, NotCanonical) as error:
            raise UpdateUnreadable(index, str(error)) from error
        sources.append(source)
    return sources


def open_fitting(stack: ExitStack, path: Path | None, specs: Sequence[TensorSpec], words: str) -> Source | None:
    """The file at `path`, aligned to `specs`; raises NotCanonical, which names the file by `words`."""
    if path is None:
        return None
    try:
        source = _open(stack, path, keep_open=True)
        _align(source, specs)
    except NotCanonical as error:
        raise NotCanonical(f"{words}: {error}") from error
    return source


def windows(specs: Sequence[TensorSpec], elements: int) -> Iterator[list[Segment]]:
    """All tensors in order, cut and gathered into windows of at most `elements` elements."""
    window: list[Segment] = []
    used = at = 0
    for tensor, spec in enumerate(specs):
        start = 0
        while start < spec.numel:
            count = min(spec.numel - start, elements - used)
            window.append(Segment(tensor, spec, start, count, at))
            start += count
            used += count
            at += count if spec.dtype in FLOATS else 0
            if used == elements:
                yield window
                window, used, at = [], 0, 0
    if window:
        yield window


def _open(stack: ExitStack, path: Path, keep_open: bool) -> Source:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        layout = read_layout(fd)
    except BaseException:
        os.close(fd)
        raise
    if keep_open:
        stack.callback(os.close, fd)
    else:
        os.close(fd)
    return Source(path, fd if keep_open else None, layout, layout.offsets)


def _align(source: Source, specs: Sequence[TensorSpec]) -> None:
    """Puts a source's offsets into the order of `specs`; raises NotCanonical when it holds other tensors."""
    if source.layout.specs == tuple(specs):
        return
    if signature(source.layout.specs) != signature(specs):
        raise NotCanonical("its names, shapes or dtypes are not those of the first update")
    places = {spec.name: offset for spec, offset in zip(source.layout.specs, source.layout.offsets, strict=True)}
    source.offsets = tuple(places[spec.name] for spec in specs)
