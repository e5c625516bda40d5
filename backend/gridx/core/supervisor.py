"""Runs child processes, starts a dead one anew, and takes all of them along when it ends, even by SIGKILL.

Each child inherits the reading end of a pipe whose writing end only this process holds. However this process ends, the pipe
closes, and a thread in the child notices.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

PIPE_VARIABLE = "GRIDX_SUPERVISOR_PIPE"
_BACKOFF_S = (0.2, 1.0, 5.0)
_HEALTHY_S = 30.0
_STOP_S = 20.0
_log = structlog.get_logger()


@dataclass(frozen=True)
class Child:
    name: str
    command: list[str]


def supervise(children: Sequence[Child]) -> int:
    """Run until SIGTERM or SIGINT. Returns 0, or 1 when a child cannot be kept alive at all."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    reading, writing = os.pipe()
    keepers = [_Keeper(child, reading, stop) for child in children]
    for keeper in keepers:
        keeper.thread.start()
    stop.wait()
    for keeper in keepers:
        keeper.terminate()
    end = time.monotonic() + _STOP_S
    for keeper in keepers:
        keeper.join(max(0.0, end - time.monotonic()))
    os.close(writing)
    os.close(reading)
    return 1 if any(keeper.gave_up for keeper in keepers) else 0


def die_with_supervisor() -> None:
    """Called by a child at its start: end this process when the supervisor is gone. Without a supervisor it does nothing."""
    descriptor = os.environ.get(PIPE_VARIABLE)
    if descriptor is None:
        return
    threading.Thread(target=_watch, args=(int(descriptor),), name="supervisor-watch", daemon=True).start()


def _watch(descriptor: int) -> None:
    os.read(descriptor, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_S)  # a last resort, after the graceful stop had its time
    os._exit(1)


class _Keeper:
    """Keeps one child alive."""

    def __init__(self, child: Child, pipe: int, stop: threading.Event) -> None:
        self._child = child
        self._pipe = pipe
        self._stop = stop
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.gave_up = False
        self.thread = threading.Thread(target=self._run, name=f"keep-{child.name}", daemon=True)

    def terminate(self) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()

    def join(self, timeout_s: float) -> None:
        self.thread.join(timeout_s)
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            begun = time.monotonic()
            code = self._run_once()
            if self._stop.is_set():
                return
            failures = 0 if time.monotonic() - begun > _HEALTHY_S else failures + 1
            _log.error("process ended", process=self._child.name, exit_code=code, failures=failures)
            if failures > 10:
                self.gave_up = True
                self._stop.set()
                return
            self._stop.wait(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])

    def _run_once(self) -> int:
        with self._lock:
            if self._stop.is_set():
                return 0
            environment = os.environ | {PIPE_VARIABLE: str(self._pipe)}
            # A session of its own: Ctrl-C reaches the supervisor alone, which then ends the children in order.
            process = subprocess.Popen(self._child.command, env=environment, pass_fds=(self._pipe,), start_new_session=True)
            self._process = process
        return process.wait()
