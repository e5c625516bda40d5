"""One folder and one set of helper processes for a whole test session, shared by all pytest-xdist workers.

The first process (the controller, or the only one) makes the folder and hands its path down in the environment. Whoever first needs a
thing makes it under a file lock; the controller takes everything down at the end, by what is written in the folder.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

_VARIABLE = "GRIDX_TEST_SESSION"


def begin() -> bool:
    """Makes the shared folder unless a controller already did. True in the process that has to call `end`."""
    if _VARIABLE in os.environ:
        return False
    os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="gridx-tests-")
    return True


def folder() -> Path:
    return Path(os.environ[_VARIABLE])


def end() -> None:
    shutil.rmtree(os.environ.pop(_VARIABLE), ignore_errors=True)


@contextlib.contextmanager
def only_one(name: str) -> Generator[None]:
    """Holds the session-wide lock `name`: what one worker makes under it, the others find made."""
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
