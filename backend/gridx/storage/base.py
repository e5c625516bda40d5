"""What every object store promises. Objects are whole: readers see an old one or a new one, never a part."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from gridx.core.errors import NotFound

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_MAX_KEY_CHARS = 512


class ObjectMissing(NotFound):
    """The object was never stored, or is gone."""

    code = "object_missing"


@dataclass(frozen=True)
class ObjectInfo:
    key: str
    size: int
    """Bytes."""
    modified: datetime


class ObjectStore(Protocol):
    """Bytes by key. Keys are made by us, from ids: ASCII letters, digits, `.`, `_`, `-` and `/`; no part begins with a dot."""

    def put_file(self, key: str, path: Path) -> None:
        """Store a local file, replacing what was there. The file belongs to the store from then on: it is gone from `path`."""
        ...

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Read an object as a stream. Raises ObjectMissing."""
        ...

    def fetch(self, key: str, target: Path) -> None:
        """Make an object a local file, for reading only: it may be the stored one itself. Raises ObjectMissing, or FileExistsError
        when there is something at `target`."""
        ...

    def signed_get(self, key: str, expires_s: float, filename: str) -> str:
        """A link that downloads the object as `filename` for `expires_s` seconds."""
        ...

    def signed_put(self, key: str, expires_s: float, max_bytes: int) -> tuple[str, dict[str, str]]:
        """A link to PUT the object's bytes to for `expires_s` seconds, and the headers to send along."""
        ...

    def stat(self, key: str) -> ObjectInfo | None:
        """Size and age, or None when there is no such object."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object. One that is not there is fine."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects whose keys begin with `prefix`, in no particular order."""
        ...


def check_key(key: str) -> str:
    """The key itself. Raises ValueError for one that could leave its place or that some store would spell differently."""
    if len(key) > _MAX_KEY_CHARS or not _KEY.fullmatch(key):
        raise ValueError(f"not a key for an object: {key[:80]!r}")
    return key
