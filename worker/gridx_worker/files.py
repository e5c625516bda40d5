"""Inputs on disk: what is known by its hash is kept per job, within a bound, so that later rounds need no download."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from gridx_worker.client import Client

SPARE_BYTES = 256 * 1024**2
LARGEST_INPUT = 64 * 1024**3


class NoSpace(Exception):
    """The disk of this machine has no room for the job."""


@dataclass(frozen=True)
class Fetch:
    """One download. `cap` in bytes; `until` a time.monotonic() value; `check` may raise to break off."""

    url: str
    sha256: str | None
    cap: int
    until: float
    check: Callable[[], None]


class Cache:
    """A folder of files named by their SHA-256, one sub-folder per job; the least recently used go first."""

    def __init__(self, folder: Path, *, cap_bytes: int) -> None:
        self._folder = folder
        self._cap_bytes = cap_bytes
        folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, client: Client, job_id: int, fetch: Fetch, target: Path) -> None:
        """Brings the file to `target`, from the cache when it is there and whole."""
        expected = min(fetch.cap, LARGEST_INPUT)
        if not fetch.sha256:
            client.download(fetch.url, target, sha256=None, cap=expected, until=fetch.until, check=fetch.check)
            return
        kept = self._folder / str(job_id) / fetch.sha256
        if not (kept.is_file() and _hash(kept) == fetch.sha256):
            kept.parent.mkdir(exist_ok=True)
            client.download(fetch.url, kept, sha256=fetch.sha256, cap=expected, until=fetch.until, check=fetch.check)
        now = time.time()
        os.utime(kept, (now, now))
        os.utime(kept.parent, (now, now))
        place(kept, target)
        self._trim()

    def jobs(self, count: int) -> list[int]:
        """Jobs with files here, the most recent first."""
        folders = [entry for entry in self._folder.iterdir() if entry.is_dir() and entry.name.isdigit()]
        folders.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        return [int(entry.name) for entry in folders[:count]]

    def forget(self, job_ids: Collection[int]) -> None:
        """These jobs are over: their files go."""
        for job_id in job_ids:
            shutil.rmtree(self._folder / str(job_id), ignore_errors=True)

    def _trim(self) -> None:
        files = [(path.stat(), path) for path in self._folder.glob("*/*") if path.is_file()]
        files.sort(key=lambda pair: pair[0].st_mtime)
        total = sum(status.st_size for status, _ in files)
        for status, path in files[:-1]:
            if total <= self._cap_bytes:
                break
            path.unlink(missing_ok=True)
            total -= status.st_size
        for folder in self._folder.iterdir():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def require_space(folder: Path, count: int) -> None:
    """Raises NoSpace when fewer than `count` bytes, and some to spare, are free."""
    free = shutil.disk_usage(folder).free
    if free < count + SPARE_BYTES:
        raise NoSpace(f"the agent's disk has {free // 1024**2} MB free; the job needs {(count + SPARE_BYTES) // 1024**2} MB")


def place(source: Path, target: Path) -> None:
    """A hard link where possible: no second copy on disk."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        target.chmod(0o644)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
