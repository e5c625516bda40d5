"""Objects as files below one folder. Links lead to our own `/files` routes."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from gridx.core.clock import Clock, SystemClock
from gridx.storage.base import ObjectInfo, ObjectMissing, check_key
from gridx.storage.links import Link, LinkSigner, expiry

_TEMPORARY = ".tmp"
_READ_ONLY = 0o440
_PUT_TRIES = 20


class LocalStore:
    """An ObjectStore on a local or shared file system.

    `public_url` makes links absolute; without it they are relative to the server (`/files/...`), which agents and browsers know.
    """

    def __init__(self, root: Path, secret: str, base_path: str = "/files", *, public_url: str = "", clock: Clock | None = None) -> None:
        self.root = root.resolve()
        self.clock = clock or SystemClock()
        self.signer = LinkSigner(secret)
        self._base = public_url.rstrip("/") + base_path
        (self.root / _TEMPORARY).mkdir(parents=True, exist_ok=True)

    def put_file(self, key: str, path: Path) -> None:
        target = self.path(key)
        if not S_ISREG(path.lstat().st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        temporary = self.temporary()
        try:
            self._bring_in(path, temporary)
            temporary.chmod(_READ_ONLY)
            _flush(temporary)
            self._place(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        try:
            return self.path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _missing(key) from None

    def fetch(self, key: str, target: Path) -> None:
        source = self.path(key)
        if not source.is_file():
            raise _missing(key)
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:  # another file system, or one without hard links
            with self.open(key) as stream, target.open("xb") as copy:
                shutil.copyfileobj(stream, copy, 1 << 20)

    def signed_get(self, key: str, expires_s: float, filename: str) -> str:
        link = Link("GET", check_key(key), expiry(self.clock.now(), expires_s), filename=filename)
        return self.signer.url(self._base, link)

    def signed_put(self, key: str, expires_s: float, max_bytes: int) -> tuple[str, dict[str, str]]:
        link = Link("PUT", check_key(key), expiry(self.clock.now(), expires_s), max_bytes=max_bytes)
        return self.signer.url(self._base, link), {"Content-Type": "application/octet-stream"}

    def stat(self, key: str) -> ObjectInfo | None:
        return _info(key, self.path(key))

    def delete(self, key: str) -> None:
        path = self.path(key)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        for parent in path.parents:
            if parent == self.root:
                break
            try:
                parent.rmdir()
            except OSError:  # not empty
                break

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        start = self.path(folder) if folder else self.root
        for parent, folders, names in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = Path(parent, name)
                key = path.relative_to(self.root).as_posix()
                if key.startswith(prefix) and (info := _info(key, path)) is not None:
                    yield info

    def path(self, key: str) -> Path:
        """Where an object lies. For reading; writers go through `put_file`."""
        return self.root / check_key(key)

    def temporary(self) -> Path:
        """A path nobody uses, on the same file system as the objects. Leftovers of killed processes: `sweep_temporary`."""
        return self.root / _TEMPORARY / secrets.token_hex(16)

    def sweep_temporary(self, older_than: datetime) -> int:
        """Delete temporary files last written before `older_than`. Returns how many."""
        count = 0
        for path in (self.root / _TEMPORARY).iterdir():
            try:
                if path.stat().st_mtime < older_than.timestamp():
                    path.unlink()
                    count += 1
            except FileNotFoundError:
                continue
        return count

    def _bring_in(self, path: Path, temporary: Path) -> None:
        try:
            path.rename(temporary)
        except OSError:  # another file system
            shutil.copyfile(path, temporary)
        # A hard link of itself renamed onto itself stays, and a copy leaves its source.
        path.unlink(missing_ok=True)

    def _place(self, temporary: Path, target: Path) -> None:
        for tries_left in reversed(range(_PUT_TRIES)):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(target)
                break
            except (FileNotFoundError, FileExistsError):
                # `delete` of a neighbour removed the emptied folder in between.
                if not tries_left:
                    raise
        for parent in target.parents:
            with suppress(FileNotFoundError):  # deleted again already
                _flush(parent)
            if parent == self.root:
                break


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _info(key: str, path: Path) -> ObjectInfo | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(status.st_mode):
        return None
    return ObjectInfo(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _missing(key: str) -> ObjectMissing:
    return ObjectMissing(f"{key} is not in the store (any more)")
