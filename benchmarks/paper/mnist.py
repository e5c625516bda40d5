"""The full MNIST: from the package of mnist.txt, else the original IDX files from a mirror. Whatever the source, the bytes are checked."""

import gzip
import hashlib
import io
import os
import pickle
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
_PACKAGED: Final = "mnist/data/mnist.pkl.gz"
_PACKAGED_SHA256: Final = "f11bb9e41d6c1b6c124aa38fd605497bdcfe2ee08cf7c2bb5a41ab5d759e1416"
_FILES: Final = {  # of the IDX files, unpacked
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_HEAD_BYTES: Final = {"images": 16, "labels": 8}
_TRAIN: Final = 60_000


class NoData(Exception):
    """The full MNIST cannot be had here."""


@dataclass(frozen=True)
class Mnist:
    """Pixels of shape (n, 784) and digits of shape (n,), in the original order."""

    train_pixels: Bytes
    train_digits: Bytes
    test_pixels: Bytes
    test_digits: Bytes


def load(package: Path, mirror: str | None = None) -> Mnist:
    """From the folder that mnist.txt was installed into, or from `mirror`, the address of a folder of gzipped IDX files.

    Raises NoData: neither is there, or the bytes are not MNIST's.
    """
    files = _from_package(package / _PACKAGED) if (package / _PACKAGED).is_file() else _from_mirror(mirror)
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != _FILES[name]:
            raise NoData(f"{name} holds other bytes than MNIST's")
    arrays = [np.frombuffer(data, np.uint8, offset=_HEAD_BYTES[name.split("-")[1]]) for name, data in files.items()]
    return Mnist(arrays[0].reshape(-1, 784), arrays[1], arrays[2].reshape(-1, 784), arrays[3])


def _from_package(path: Path) -> dict[str, bytes]:
    packed = path.read_bytes()
    if hashlib.sha256(packed).hexdigest() != _PACKAGED_SHA256:
        raise NoData(f"{path} is not the file that mnist.txt names")
    parts = _ArraysOnly(io.BytesIO(gzip.decompress(packed)), encoding="latin1").load()
    pixels = np.rint(np.concatenate([pixels for pixels, _ in parts]) * 256).astype(np.uint8)
    digits = np.concatenate([digits for _, digits in parts]).astype(np.uint8)
    heads = [b"\0\0\x08\x03" + _number(_TRAIN) + _number(28) * 2, b"\0\0\x08\x01" + _number(_TRAIN)]
    heads += [b"\0\0\x08\x03" + _number(10_000) + _number(28) * 2, b"\0\0\x08\x01" + _number(10_000)]
    arrays = (pixels[:_TRAIN], digits[:_TRAIN], pixels[_TRAIN:], digits[_TRAIN:])
    return {name: head + array.tobytes() for name, head, array in zip(_FILES, heads, arrays, strict=True)}


def _from_mirror(mirror: str | None) -> dict[str, bytes]:
    if not mirror:
        raise NoData("the package of benchmarks/paper/mnist.txt is not there; GRIDX_MNIST_URL may name a folder of the IDX files")
    found: dict[str, bytes] = {}
    for name in _FILES:
        try:
            with urllib.request.urlopen(f"{mirror.rstrip('/')}/{name}.gz", timeout=60) as answer:
                found[name] = gzip.decompress(answer.read())
        except OSError as error:
            raise NoData(f"{name}.gz could not be fetched from {mirror}: {error}") from None
    return found


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


class _ArraysOnly(pickle.Unpickler):
    """Knows NumPy's arrays and nothing else, so that a pickle can do no more than describe some."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return np.empty(0).__reduce__()[0]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise NoData(f"the packaged file asks for {module}.{name}")


def mirror_from_environment() -> str | None:
    """The server's own setting, where there is one."""
    mirror = os.environ.get("GRIDX_MNIST_URL", "")
    return None if mirror in ("", "off") else mirror
