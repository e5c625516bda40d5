"""Taking the one file that a script leaves behind: written by a stranger, so it may be a link, a pipe, too large, or not there."""

import errno
import hashlib
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

from gridx_worker.sandbox.base import MODEL_ADVICE, Outcome

BLOCK = 1024 * 1024
_OF_THE_SCRIPTS_MAKING = (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EACCES, errno.EPERM)
"""Why a file cannot be opened that no machine is to blame for: a link, a socket, a file where the folder was, rights taken away."""


class BadOutput(Exception):
    """The output file cannot be taken; the message is for the buyer."""


def take_file(folder: Path, name: str, target: Path, cap: int) -> tuple[int, str]:
    """Copies folder/name to target (mode 0600) without following links; returns (bytes, sha256 in hex). Raises BadOutput."""
    try:
        source = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise missing(name) from error
    except OSError as error:
        if error.errno in _OF_THE_SCRIPTS_MAKING:
            raise BadOutput(f"{name} is not a regular file that can be read") from error
        raise
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise BadOutput(f"{name} is not a regular file")
        return copy_capped(lambda count: os.read(source, count), name, target, size=status.st_size, cap=cap)
    finally:
        os.close(source)


def copy_capped(read: Callable[[int], bytes], name: str, target: Path, *, size: int, cap: int) -> tuple[int, str]:
    """Streams `size` announced bytes to target, hashing on the way; returns (bytes, sha256 in hex). Raises BadOutput."""
    if size > cap:
        raise BadOutput(f"{name} has {size} bytes; at most {cap} are taken")
    if size == 0:
        raise BadOutput(f"{name} is empty")
    digest, count = hashlib.sha256(), 0
    target.unlink(missing_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        while block := read(BLOCK):
            count += len(block)
            if count > cap:
                raise BadOutput(f"{name} has more than {cap} bytes")
            digest.update(block)
            file.write(block)
    if count != size:
        raise BadOutput(f"{name} changed while it was read")
    return count, digest.hexdigest()


def missing(name: str) -> BadOutput:
    return BadOutput(f"the script ended well but {MODEL_ADVICE}" if name == "model.pth" else f"the script wrote no {name}")


def describe_exit(code: int, *, seconds: float) -> Outcome:
    """The outcome of a script that ended with another code than 0 (128 + n: killed by signal n)."""
    if code > 128 and code - 128 in signal.valid_signals():
        return Outcome("script", f"the script was killed by signal {code - 128} ({signal.Signals(code - 128).name})", code, seconds=seconds)
    return Outcome("script", f"the script exited with code {code}", code, seconds=seconds)


def out_of_memory(memory_bytes: int, code: int | None, *, seconds: float) -> Outcome:
    words = f"the script used more than {memory_bytes // 1024**2} MB of memory; use smaller batches or ask for more chunks"
    return Outcome("memory", words, code, seconds=seconds)


def out_of_time(*, seconds: float) -> Outcome:
    return Outcome("timeout", f"the script was stopped at the job's time limit, after {seconds:.0f} s of training", seconds=seconds)
