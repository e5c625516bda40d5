"""Runs `inspect_update` in a child process of its own, with limits; whatever the child does, the caller lives.

The child comes from multiprocessing's fork server, in which torch is imported once (some 10-30 ms a call). The fork
server is a process of its own, so that no child inherits the caller's connections or locks, and callers may be threads.
One process a call, never a pool: an abort in a pool breaks its neighbours.
"""

import json
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from dataclasses import asdict
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from gridx.aggregation.summary import UpdateCaps, UpdateRefused, UpdateSummary

_ANSWER_BYTES: Final = 64 << 20
_SLACK_BYTES: Final = 512 << 20
_CONTEXT = multiprocessing.get_context("forkserver")
_START = threading.Lock()
_MIN_SECONDS: Final = 60.0
_BYTES_PER_SECOND: Final = 20e6

if TYPE_CHECKING:  # a generic class for the type checker only
    _Pipe = Connection[Any, Any]


def verify_in_child(source: Path, canonical: Path, caps: UpdateCaps, timeout_s: float = 120.0) -> UpdateSummary:
    """The summary of the update at `source`, written to `canonical`; raises UpdateRefused(code, detail).

    A child that dies, hangs past `timeout_s` or passes its limits is a refused upload. Thread-safe.
    """
    receiver, sender = cast("tuple[_Pipe, _Pipe]", _CONTEXT.Pipe(duplex=False))
    child = _CONTEXT.Process(target=_child, args=(sender, str(source), str(canonical), json.dumps(asdict(caps))), daemon=True)
    with receiver:
        with sender:
            _start(child)
        try:
            answer = _await(child, receiver, time.monotonic() + timeout_s)
        finally:
            if child.is_alive():
                child.kill()
            child.join()
            exitcode = child.exitcode
            child.close()
            _remove_leftovers(canonical)
    if answer is None:
        raise UpdateRefused("timeout", f"reading model.pth took longer than {timeout_s:g} s")
    if not answer:
        raise _death(exitcode, caps)
    return _decode(answer)


def verify_timeout_s(size: int) -> float:
    """Seconds to give an upload of `size` bytes: reading, checking and writing are much faster, so this only bounds a child that hangs."""
    return _MIN_SECONDS + size / _BYTES_PER_SECOND


def warm_up() -> None:
    """Starts the fork server, which imports torch (about 1-2 s), so that the first upload does not wait for it."""
    child = _CONTEXT.Process(target=_nothing)
    _start(child)
    child.join()


def _start(child: BaseProcess) -> None:
    with _START:
        _preload()
        child.start()


@cache
def _preload() -> None:
    # The main module too, or every child would import it anew.
    _CONTEXT.set_forkserver_preload(["__main__", "torch", "gridx.aggregation.update_file"])


def _nothing() -> None:
    return


def _await(child: BaseProcess, receiver: "_Pipe", deadline: float) -> bytes | None:
    """The child's answer; b"" when it died without one, None when the time is over."""
    while (left := deadline - time.monotonic()) > 0:
        ready = wait([receiver, child.sentinel], timeout=left)
        if receiver in ready or (ready and receiver.poll()):
            try:
                return receiver.recv_bytes(_ANSWER_BYTES)
            except (EOFError, OSError):
                return b""
        if ready:
            return b""
    return None


def _decode(answer: bytes) -> UpdateSummary:
    """The child may have been taken over: its answer is JSON, never a pickle, and read with care."""
    try:
        value = json.loads(answer)
        if "code" in value:
            raise UpdateRefused(str(value["code"])[:64], str(value["detail"])[:1000])
        return UpdateSummary.from_json(value)
    except UpdateRefused:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UpdateRefused("crashed", "reading model.pth ended without a usable answer") from error


def _death(exitcode: int | None, caps: UpdateCaps) -> UpdateRefused:
    if exitcode is None or exitcode >= 0:
        return UpdateRefused("crashed", f"reading model.pth ended with exit code {exitcode}")
    name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else f"signal {-exitcode}"
    if -exitcode == signal.SIGXCPU:
        return UpdateRefused("cpu_limit", f"reading model.pth took more than {caps.cpu_s} s of processor time")
    return UpdateRefused("crashed", f"reading model.pth killed the process that read it ({name}); the file is malformed")


def _remove_leftovers(canonical: Path) -> None:
    for path in canonical.parent.glob(f".{canonical.name}.*.tmp"):
        path.unlink(missing_ok=True)


def _child(sender: "_Pipe", source: str, canonical: str, caps_json: str) -> None:
    """The child's whole life."""
    caps = UpdateCaps(**json.loads(caps_json))
    import torch

    from gridx.aggregation.update_file import inspect_update  # preloaded in the fork server; the caller stays torch-free

    torch.set_num_threads(1)
    _limit(os.stat(source).st_size, caps)
    try:
        answer = inspect_update(Path(source), Path(canonical), caps).to_json()
    except UpdateRefused as refused:
        answer = {"code": refused.code, "detail": refused.detail}
    except MemoryError:
        answer = {"code": "memory_limit", "detail": "reading model.pth needs more memory than its size allows"}
    except RecursionError:
        answer = {"code": "unreadable", "detail": "model.pth is nested too deeply"}
    except Exception as error:
        answer = {"code": "unreadable", "detail": f"model.pth can not be read ({type(error).__name__}: {error!s:.200})"}
    sender.send_bytes(json.dumps(answer).encode())
    sender.close()
    sys.stdout.flush()
    os._exit(0)  # nothing of a stranger's is torn down


def _limit(size: int, caps: UpdateCaps) -> None:
    """Caps address space (on top of what torch maps already), processor time, files, and forbids core dumps."""
    with open("/proc/self/statm", "rb") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    budget = caps.memory_bytes if caps.memory_bytes is not None else 3 * min(size, caps.max_bytes) + _SLACK_BYTES
    limits = (
        (resource.RLIMIT_AS, mapped + budget),
        (resource.RLIMIT_CPU, caps.cpu_s),
        (resource.RLIMIT_FSIZE, caps.max_bytes + (64 << 20)),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, soft in limits:
        _, hard = resource.getrlimit(kind)
        value = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
        # SIGXCPU at the soft limit tells what happened; one second later comes SIGKILL.
        unbounded = hard == resource.RLIM_INFINITY
        resource.setrlimit(kind, (value, value + 1 if kind == resource.RLIMIT_CPU and unbounded else value))
