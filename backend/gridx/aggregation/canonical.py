"""The one file format in which Grid-X keeps models: a `.pth` that `torch.load(weights_only=True)` reads.

It is torch.save's zip (PyTorch's `caffe2/serialize/inline_container.cc`), written by ourselves so that the bytes
depend on nothing but names, dtypes, shapes and values: entries are STORED, dated zero, each tensor has a storage of
its own, contiguous and aligned to 64 bytes. Where a tensor lies in the file is therefore a function of the specs
alone (`plan`), and a merge can read any part of any model by offset. Torch-free.
"""

import hashlib
import io
import os
import pickle
import secrets
import struct
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from gridx.aggregation.summary import TensorSpec, UpdateSummary

_STORAGES: Final = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}
_DTYPES = {storage: dtype for dtype, storage in _STORAGES.items()}
MAX_FILE_BYTES: Final = (1 << 32) - (1 << 20)  # no zip64
MAX_TENSORS: Final = 60_000
_ALIGNMENT = 64
_ROOT = "archive"
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_DESCRIPTOR = struct.Struct("<4s3I")
_FLAGS = 0x0808  # sizes and CRC follow the data; names are UTF-8
_COPY_BYTES = 1 << 20


class NotCanonical(ValueError):
    """The file is not one that this module wrote, or not all of it."""


@dataclass(frozen=True, slots=True)
class _Entry:
    name: bytes
    header: bytes
    start: int  # of the data in the file
    nbytes: int

    @property
    def offset(self) -> int:
        return self.start - len(self.header)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies: `offsets[i]` is the first byte of `specs[i]`'s data, `size` the whole file's length."""

    specs: tuple[TensorSpec, ...]
    offsets: tuple[int, ...]
    size: int
    prefix: bytes  # from the file's first byte to the first tensor's first local header
    entries: tuple[_Entry, ...]
    central_offset: int


def plan(specs: Sequence[TensorSpec]) -> Layout:
    """The layout of a file with these tensors in this order; raises ValueError when it would pass 4 GiB."""
    if len(specs) > MAX_TENSORS:
        raise ValueError(f"{len(specs)} tensors; a model file holds at most {MAX_TENSORS}")
    small = [("data.pkl", _pickle(specs)), ("byteorder", b"little"), ("version", b"3\n")]
    entries: list[_Entry] = []
    prefix = bytearray()
    for name, content in small:
        entry = _entry(name, len(prefix), len(content))
        entries.append(entry)
        prefix += entry.header + content + _descriptor(zlib.crc32(content), len(content))
    position = len(prefix)
    for index, spec in enumerate(specs):
        entry = _entry(f"data/{index}", position, spec.nbytes)
        entries.append(entry)
        position = entry.start + entry.nbytes + _DESCRIPTOR.size
    size = position + sum(_CENTRAL.size + len(entry.name) for entry in entries) + _END.size
    if size > MAX_FILE_BYTES:
        raise ValueError(f"the model needs {size} bytes; a model file holds at most {MAX_FILE_BYTES}")
    return Layout(
        specs=tuple(specs),
        offsets=tuple(entry.start for entry in entries[len(small) :]),
        size=size,
        prefix=bytes(prefix),
        entries=tuple(entries),
        central_offset=position,
    )


def read_layout(fd: int) -> Layout:
    """The layout of the canonical file open at `fd`; raises NotCanonical. Checks its head, tail and length."""
    size = os.fstat(fd).st_size
    head = os.pread(fd, _LOCAL.size, 0)
    if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
        raise NotCanonical("no zip archive")
    *_, name_length, extra_length = _LOCAL.unpack(head)
    start = _LOCAL.size + name_length + extra_length
    end = os.pread(fd, _END.size, max(0, size - _END.size))
    if len(end) < _END.size or end[:4] != b"PK\x05\x06":
        raise NotCanonical("cut off: the archive's last record is missing")
    central = os.pread(fd, _CENTRAL.size, _END.unpack(end)[6])
    if len(central) < _CENTRAL.size or central[:4] != b"PK\x01\x02":
        raise NotCanonical("the archive's directory is missing")
    pickled = os.pread(fd, min(_CENTRAL.unpack(central)[9], 64 << 20), start)
    try:
        layout = plan(_unpickle(pickled))
    except Exception as error:
        raise NotCanonical(f"its list of tensors can not be read ({type(error).__name__})") from error
    if layout.size != size or os.pread(fd, len(layout.prefix), 0) != layout.prefix:
        raise NotCanonical("its head or length is not what its list of tensors needs")
    return layout


def summarise(path: Path) -> UpdateSummary:
    """The summary of a canonical file, with one read of its bytes; raises NotCanonical, OSError."""
    hasher = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        layout = read_layout(file.fileno())
        while block := file.read(_COPY_BYTES):
            hasher.update(block)
    return UpdateSummary.of(hasher.hexdigest(), layout.size, layout.specs)


class CanonicalWriter:
    """Writes one canonical file; nothing is at `path` unless `close` returned. Use as a context manager.

    `write` takes each tensor's bytes in order. With `digest` the tensors themselves come in order too, and the file's
    SHA-256 is taken on the way.
    """

    def __init__(self, path: Path, layout: Layout, *, digest: bool = True) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        self._layout = layout
        self._tensors = layout.entries[len(layout.entries) - len(layout.specs) :]
        self._done = [0] * len(self._tensors)
        self._crcs = [0] * len(self._tensors)
        self._hasher = hashlib.sha256() if digest else None
        self._current = -1  # the tensor whose bytes the hash is at
        self._fd = -1

    def __enter__(self) -> Self:
        self._fd = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._put(self._layout.prefix, 0)
        for entry in self._tensors:
            self._put(entry.header, entry.offset)
        self._hash(self._layout.prefix)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._temporary.unlink(missing_ok=True)

    def write(self, index: int, data: bytes | bytearray | memoryview) -> None:
        """Appends `data` to tensor `index`; raises ValueError beyond its end or, with `digest`, out of order."""
        entry = self._tensors[index]
        done = self._done[index]
        length = memoryview(data).nbytes
        if length == 0:
            return
        if done + length > entry.nbytes:
            raise ValueError(f"more bytes than tensor {index} holds")
        if self._hasher is not None:
            self._move_to(index)
        self._crcs[index] = zlib.crc32(data, self._crcs[index])
        self._put(data, entry.start + done)
        self._hash(data)
        self._done[index] = done + length

    def close(self) -> tuple[str, int]:
        """Completes the file and moves it to its path; returns (sha256 hex or "" without `digest`, bytes)."""
        if any(done != entry.nbytes for done, entry in zip(self._done, self._tensors, strict=True)):
            raise ValueError("a tensor is not complete")
        self._move_to(len(self._tensors))
        if self._hasher is None:
            for crc, entry in zip(self._crcs, self._tensors, strict=True):
                self._put(_descriptor(crc, entry.nbytes), entry.start + entry.nbytes)
        tail = self._central()
        self._put(tail, self._layout.central_offset)
        self._hash(tail)
        os.close(self._fd)
        self._fd = -1
        self._temporary.replace(self._path)
        return (self._hasher.hexdigest() if self._hasher else ""), self._layout.size

    def _move_to(self, index: int) -> None:
        """Ends the tensors before `index`: their descriptors are written and hashed, the next headers hashed."""
        if self._hasher is None:
            return
        if index < self._current:
            raise ValueError("tensors must be written in order")
        while self._current < index:
            if self._current >= 0:
                entry = self._tensors[self._current]
                if self._done[self._current] != entry.nbytes:
                    raise ValueError(f"tensor {self._current} is not complete")
                descriptor = _descriptor(self._crcs[self._current], entry.nbytes)
                self._put(descriptor, entry.start + entry.nbytes)
                self._hash(descriptor)
            self._current += 1
            if self._current < len(self._tensors):
                self._hash(self._tensors[self._current].header)

    def _central(self) -> bytes:
        entries = self._layout.entries
        fixed = len(entries) - len(self._tensors)
        out = bytearray()
        for number, entry in enumerate(entries):
            if number < fixed:
                content = self._layout.prefix[entry.start : entry.start + entry.nbytes]
                crc = zlib.crc32(content)
            else:
                crc = self._crcs[number - fixed]
            out += _CENTRAL.pack(
                b"PK\x01\x02", 0, 0, _FLAGS, 0, 0, 0, crc, entry.nbytes, entry.nbytes,
                len(entry.name), 0, 0, 0, 0, 0, entry.offset,
            )  # fmt: skip
            out += entry.name
        count = len(entries)
        out += _END.pack(b"PK\x05\x06", 0, 0, count, count, len(out), self._layout.central_offset, 0)
        return bytes(out)

    def _hash(self, data: bytes | bytearray | memoryview) -> None:
        if self._hasher is not None:
            self._hasher.update(data)

    def _put(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        view = memoryview(data).cast("B")
        while view:
            written = os.pwrite(self._fd, view, offset)
            view = view[written:]
            offset += written


def _entry(name: str, offset: int, nbytes: int) -> _Entry:
    encoded = f"{_ROOT}/{name}".encode()
    bare = offset + _LOCAL.size + len(encoded) + 4
    padding = -bare % _ALIGNMENT
    header = _LOCAL.pack(b"PK\x03\x04", 0, _FLAGS, 0, 0, 0, 0, 0, 0, len(encoded), padding + 4)
    header += encoded + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    return _Entry(name=encoded, header=header, start=offset + len(header), nbytes=nbytes)


def _descriptor(crc: int, nbytes: int) -> bytes:
    return _DESCRIPTOR.pack(b"PK\x07\x08", crc, nbytes, nbytes)


def _pickle(specs: Sequence[TensorSpec]) -> bytes:
    """Pickle protocol 2 of OrderedDict(name -> tensor), as torch.save writes it, one storage a tensor."""
    out = bytearray(b"\x80\x02ccollections\nOrderedDict\n)R(")
    for index, spec in enumerate(specs):
        strides: list[int] = []
        step = 1
        for dimension in reversed(spec.shape):
            strides.append(step)
            step *= max(dimension, 1)
        out += _text(spec.name) + b"ctorch._utils\n_rebuild_tensor_v2\n(("
        out += _text("storage") + f"ctorch\n{_STORAGES[spec.dtype]}\n".encode()
        out += _text(str(index)) + _text("cpu") + _integer(spec.numel) + b"tQK\x00"
        out += _tuple(spec.shape) + _tuple(strides[::-1]) + b"\x89ccollections\nOrderedDict\n)RtR"
    return bytes(out + b"u.")


def _text(value: str) -> bytes:
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _integer(value: int) -> bytes:
    if value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    encoded = value.to_bytes(8, "little", signed=True)
    return b"\x8a\x08" + encoded


def _tuple(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(_integer, values)) + b"t"


class _Reader(pickle.Unpickler):
    """Reads a canonical data.pkl into specs; no global but the three that `_pickle` writes."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _spec_of
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        raise pickle.UnpicklingError(f"unexpected global {module}.{name}")

    def persistent_load(self, pid: Any, /) -> Any:
        return pid[1]


def _spec_of(dtype: str, offset: int, shape: tuple[int, ...], *_: object) -> tuple[str, tuple[int, ...]]:
    return dtype, shape


def _unpickle(data: bytes) -> list[TensorSpec]:
    tensors: dict[str, tuple[str, tuple[int, ...]]] = _Reader(io.BytesIO(data)).load()
    return [TensorSpec(name, dtype, tuple(shape)) for name, (dtype, shape) in tensors.items()]
