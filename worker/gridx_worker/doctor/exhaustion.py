"""What escape_script.py, beside which it lies in the sandbox, tries in order to take all of something; and how things are tried."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

MB = 1024**2
GOAL_BYTES = 10_000 * MB
GOAL_FILES = 1_000_000
GOAL_PROCESSES = 20_000


class Held(Exception):
    """The sandbox held; the message says how."""


def exhaustion() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "start processes without end", fork_bomb
    yield "open files without end", open_files
    yield "take 10 GB in a child", lambda: in_expendable_child(allocate)
    for place in ("/tmp", "/dev/shm", "."):
        yield f"write 10 GB to {place}", lambda place=place: in_expendable_child(lambda: fill(place))
    yield "make a file of 8 TB", make_sparse
    yield "make a million files", make_files


def held(how: str) -> NoReturn:
    raise Held(how)


def in_child(action: Callable[[], object]) -> str:
    """What would change this process for good is tried by a child. Raises OSError as the action did."""
    child = os.fork()
    if not child:
        try:
            action()
        except OSError as error:
            os._exit(error.errno or 255)
        except MemoryError:
            os._exit(errno.ENOMEM)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        raise Held(f"its process was killed by signal {-code}")
    if code > 0:
        raise OSError(code, os.strerror(code))
    return "it worked"


def in_expendable_child(action: Callable[[], object]) -> str:
    """What may be killed for memory is tried by a child, and this process makes itself the lesser prey."""
    Path("/proc/self/oom_score_adj").write_text("500")
    try:
        return in_child(lambda: (Path("/proc/self/oom_score_adj").write_text("1000"), action()))
    finally:
        Path("filling").unlink(missing_ok=True)


def fork_bomb() -> int:
    """How many processes came to live at once; they end with their pipe."""
    listen, tell = os.pipe()
    children: list[int] = []
    try:
        while len(children) < GOAL_PROCESSES:
            child = os.fork()
            if not child:
                os.close(tell)
                os.read(listen, 1)
                os._exit(0)
            children.append(child)
    except OSError as error:
        raise Held(f"after {len(children)}: {error.strerror}") from error
    finally:
        os.close(tell)
        os.close(listen)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return len(children)


def open_files() -> int:
    files: list[int] = []
    try:
        while len(files) < GOAL_FILES:
            files.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for file in files:
            os.close(file)
    return len(files)


def allocate() -> list[bytes]:
    return [b"x" * (50 * MB) for _ in range(GOAL_BYTES // (50 * MB))]


def fill(place: str) -> int:
    path = f"{place}/filling"
    try:
        with open(path, "wb", buffering=0) as file:
            while file.tell() < GOAL_BYTES:
                file.write(bytes(MB))
            return file.tell()
    finally:
        os.unlink(path)


def make_sparse() -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("sparse", "wb") as file:
            return file.truncate(8 * 1024**4)
    finally:
        os.unlink("sparse")


def make_files() -> int:
    made = 0
    try:
        os.mkdir("many")
        while made < GOAL_FILES:
            os.close(os.open(f"many/{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
    finally:
        for number in range(made):
            os.unlink(f"many/{number}")
        os.rmdir("many")
    return made
