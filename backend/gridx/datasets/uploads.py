"""Resumable uploads: a folder of half-arrived files. How far one has come is the size of its file, so that any process may go on with it.

Each upload is `{home}/uploads/{owner}/{id}.part` with a small `{id}.json` beside it that says what is coming.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path

from anyio import to_thread
from starlette.requests import ClientDisconnect

from gridx.accounts.service import Actor
from gridx.core.errors import GridxError, NotFound
from gridx.core.streams import too_large, write_all, writing

MAX_AGE_S = 24 * 3600
_MOST_OPEN = 20
_BLOCK_BYTES = 1 << 20
_ID = re.compile(r"[0-9a-f]{32}")


class WrongOffset(GridxError):
    """The bytes sent do not follow those that have arrived."""

    status = 409
    code = "wrong_offset"

    def __init__(self, offset: int) -> None:
        super().__init__(f"{offset} bytes have arrived; go on from there with Upload-Offset: {offset}")
        self.headers = {"Upload-Offset": str(offset)}


class UploadBusy(GridxError):
    status = 409
    code = "upload_busy"
    headers = {"Retry-After": "1"}  # noqa: RUF012 - read only


class TooManyUploads(GridxError):
    status = 409
    code = "too_many_uploads"


class HashMismatch(GridxError):
    """What arrived is not what was announced. The upload begins again at 0."""

    status = 422
    code = "hash_mismatch"


@dataclass(frozen=True)
class Upload:
    """What is coming. `bytes` is the size of the whole file."""

    id: str
    name: str
    bytes: int
    sha256: str | None


class Uploads:
    """The uploads below one folder."""

    def __init__(self, home: Path) -> None:
        self._root = home / "uploads"

    def begin(self, actor: Actor, *, name: str, size: int, sha256: str | None) -> Upload:
        """Raises TooManyUploads when the actor has 20 that are not finished."""
        folder = self._folder(actor)
        folder.mkdir(parents=True, exist_ok=True)
        if sum(1 for _ in folder.glob("*.json")) >= _MOST_OPEN:
            raise TooManyUploads(f"{_MOST_OPEN} uploads are open already; finish or delete some")
        upload = Upload(secrets.token_hex(16), name, size, sha256)
        temporary = folder / f"{upload.id}.tmp"
        temporary.write_text(json.dumps(asdict(upload)))
        temporary.rename(folder / f"{upload.id}.json")
        return upload

    def get(self, actor: Actor, upload_id: str) -> Upload:
        """Raises NotFound when it ended, was swept, or is somebody else's."""
        if not _ID.fullmatch(upload_id):
            raise _unknown()
        try:
            return Upload(**json.loads(self._path(actor, upload_id, "json").read_text()))
        except FileNotFoundError:
            raise _unknown() from None

    def offset(self, actor: Actor, upload: Upload) -> int:
        """How many bytes have arrived."""
        try:
            return self.part(actor, upload).stat().st_size
        except FileNotFoundError:
            return 0

    def part(self, actor: Actor, upload: Upload) -> Path:
        return self._path(actor, upload.id, "part")

    async def append(self, actor: Actor, upload: Upload, offset: int, blocks: AsyncIterator[bytes]) -> int:
        """Add bytes that begin at `offset`. When the sender goes away, what has arrived is kept.

        Returns:
            How many bytes have arrived in all.

        Raises:
            WrongOffset, UploadBusy, TooLarge (more bytes than were announced: none of these are kept).
        """
        target = await to_thread.run_sync(self._open_part, actor, upload)
        try:
            here = await to_thread.run_sync(_lock_at_end, target)
            if here != offset:
                raise WrongOffset(here)
            return await _append_blocks(target, offset, upload.bytes, blocks)
        finally:
            target.close()

    @contextmanager
    def exclusive(self, actor: Actor, upload: Upload) -> Generator[None]:
        """Nobody else appends to the upload, or ends it, in this block. Raises UploadBusy."""
        with self._open_part(actor, upload) as target:
            _lock_at_end(target)
            yield

    def check_hash(self, actor: Actor, upload: Upload) -> str:
        """SHA-256 of what arrived, hex. Raises HashMismatch, and begins again, when another was announced."""
        part = self.part(actor, upload)
        with part.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if upload.sha256 not in (None, found):
            part.unlink(missing_ok=True)
            raise HashMismatch("the file that arrived is not the one announced (SHA-256 differs); send it again from 0")
        return found

    def end(self, actor: Actor, upload_id: str) -> None:
        """Forget an upload. One that is not there is fine."""
        if _ID.fullmatch(upload_id):
            for kind in ("json", "part"):
                self._path(actor, upload_id, kind).unlink(missing_ok=True)

    def sweep(self, now: datetime, max_age_s: float = MAX_AGE_S) -> int:
        """Delete uploads that nothing was added to for `max_age_s` seconds. Returns how many files went."""
        if not self._root.exists():
            return 0
        oldest, count = now.timestamp() - max_age_s, 0
        for folder in self._root.iterdir():
            ids = {path.stem for path in folder.iterdir()}
            for upload_id in ids:
                paths = [folder / f"{upload_id}.{kind}" for kind in ("json", "part", "tmp")]
                if max(map(_modified, paths)) < oldest:
                    count += sum(1 for path in paths if _removed(path))
        return count

    def _open_part(self, actor: Actor, upload: Upload) -> FileIO:
        return self.part(actor, upload).open("ab", buffering=0)

    def _folder(self, actor: Actor) -> Path:
        return self._root / str(actor.id)

    def _path(self, actor: Actor, upload_id: str, kind: str) -> Path:
        return self._folder(actor) / f"{upload_id}.{kind}"


def sweep_uploads(home: Path, now: datetime, max_age_s: float = MAX_AGE_S) -> int:
    """Delete what is left of uploads that were given up. Returns how many files went."""
    return Uploads(home).sweep(now, max_age_s)


async def _append_blocks(target: FileIO, offset: int, total: int, blocks: AsyncIterator[bytes]) -> int:
    at, buffer = offset, bytearray()

    def drain() -> None:
        with writing():
            write_all(target, buffer)
        buffer.clear()

    try:
        async for block in blocks:
            at += len(block)
            if at > total:
                await to_thread.run_sync(os.ftruncate, target.fileno(), offset)
                raise too_large(total - offset)
            buffer += block
            if len(buffer) >= _BLOCK_BYTES:
                await to_thread.run_sync(drain)
    except ClientDisconnect:
        pass  # what has arrived counts; the sender asks for the offset when it is back
    await to_thread.run_sync(drain)
    return at


def _lock_at_end(target: FileIO) -> int:
    """Lock the file against other writers. Returns its size. Raises UploadBusy."""
    try:
        fcntl.flock(target.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UploadBusy("another request is adding to this upload; try again when it has ended") from None
    return os.fstat(target.fileno()).st_size


def _unknown() -> NotFound:
    return NotFound("there is no such upload; it ended, or nothing was added for a day")


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
