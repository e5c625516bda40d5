"""Request bodies on their way to disk: counted, hashed, never held in memory."""

import errno
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request

from gridx.core.errors import GridxError, TooLarge

_BLOCK_BYTES = 1 << 20


class UploadBroken(GridxError):
    """The sender went away before its body ended. Nothing of it was kept."""

    status = 400
    code = "upload_broken"


class StorageFull(GridxError):
    """The disk that takes uploads is full."""

    status = 507
    code = "storage_full"


def check_announced_size(request: Request, limit: int) -> int | None:
    """The body's announced size in bytes, if it was announced. Raises TooLarge before a byte is read."""
    announced = request.headers.get("content-length", "")
    if not announced.isdecimal() or len(announced) > 18:
        return None
    if int(announced) > limit:
        raise too_large(limit)
    return int(announced)


async def stream_to_file(request: Request, path: Path, limit: int) -> tuple[int, str]:
    """Write the body to `path`, which must not exist yet, reading no more than `limit` bytes.

    Returns:
        Bytes written and their SHA-256 in hex. Nothing is flushed to the disk by force.

    Raises:
        TooLarge: the body is larger than `limit` bytes; `path` is gone again.
        UploadBroken: the sender went away; `path` is gone again.
    """
    check_announced_size(request, limit)
    digest, count = hashlib.sha256(), 0
    buffer = bytearray()
    target = await to_thread.run_sync(_create, path)

    def drain() -> None:
        digest.update(buffer)
        with writing():
            write_all(target, buffer)
        buffer.clear()

    try:
        with target:
            async for block in request.stream():
                count += len(block)
                if count > limit:
                    raise too_large(limit)
                buffer += block
                if len(buffer) >= _BLOCK_BYTES:
                    await to_thread.run_sync(drain)
            await to_thread.run_sync(drain)
    except BaseException as error:
        os.unlink(path)  # right away, not in a thread: this task may be cancelled already
        if isinstance(error, ClientDisconnect):
            raise UploadBroken("the upload broke off; nothing of it was kept") from None
        raise
    return count, digest.hexdigest()


@contextmanager
def writing() -> Generator[None]:
    """Raises StorageFull when the disk is full in the block."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("the server's disk is full; tell its administrator") from None
        raise


def write_all(target: FileIO, data: bytes | bytearray) -> None:
    """All of `data`; an unbuffered write alone may take less."""
    block = memoryview(data)
    try:
        at = 0
        while at < len(block):
            at += target.write(block[at:])
    finally:
        block.release()


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is larger than the {limit} bytes that are allowed here")


def _create(path: Path) -> FileIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb", buffering=0)
