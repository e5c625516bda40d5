"""A Grid-X server and its agents on this machine, as child processes that never outlive their parent. Used by demo.py and up.py."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

import httpx

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
IMAGE = "secure-executor-base"

_START_S = 90
_BUILD_S = 1800
_PR_SET_PDEATHSIG = 1
# What a developer's shell may hold and a throw-away platform must not inherit.
_SETTINGS = ("DATABASE_URL", "JWT_SECRET_KEY", "SUPABASE_", "BACKEND_URL", "COORDINATOR_URL", "AGENT_ID", "WORKER_", "GRIDX_")

Sandbox = Literal["docker", "process"]


class Trouble(Exception):
    """Something failed; the message says what, and what to do."""


@dataclass
class Processes:
    """Child processes, each the head of a group of its own, with its output in a file of `log_dir` (or on the terminal)."""

    log_dir: Path
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, command: list[str], *, env: Mapping[str, str], cwd: Path = ROOT, to_terminal: bool = False) -> None:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            output: IO[bytes] | None = None if to_terminal else stack.enter_context(self.log(name).open("wb"))
            self._running[name] = subprocess.Popen(
                command,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 (this program has one thread)
            )

    def log(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"

    def names(self) -> list[str]:
        return list(self._running)

    def ended(self) -> str | None:
        """The first process that has ended, with its exit code, in words; None while all run."""
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                return f"{name} ended with exit code {code}"
        return None

    def codes(self) -> dict[str, int | None]:
        """Exit codes by name; None of those that run."""
        return {name: process.poll() for name, process in self._running.items()}

    def tail(self, name: str, lines: int = 15) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(line[:400] for line in self.log(name).read_text(errors="replace").splitlines()[-lines:])
        return ""

    def stop(self) -> None:
        """Ends all groups: first those started after the server, which still have outcomes to report to it, then the server."""
        processes = list(self._running.values())
        _end(processes[1:])
        _end(processes[:1])
        self._running.clear()


@contextlib.contextmanager
def running(log_dir: Path) -> Generator[Processes]:
    """Processes that are ended however the block is left: normally, by an error, by Ctrl-C, by SIGTERM or SIGHUP."""

    def leave(number: int, _frame: Any) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    processes = Processes(log_dir)
    try:
        yield processes
    finally:
        # A second Ctrl-C must not leave anything behind.
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        processes.stop()
        signal.signal(signal.SIGINT, interrupt)
        for number, handler in before.items():
            signal.signal(number, handler)


def clean_environment(**settings: str) -> dict[str, str]:
    """This process's environment without any setting of Grid-X, plus `settings`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {**kept, "PYTHONUNBUFFERED": "1", **settings}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_healthy(server: str, processes: Processes) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server}/health", timeout=2).status_code == 200:
                return
        if ended := processes.ended():
            raise Trouble(f"{ended} before it answered on {server}/health")
        time.sleep(0.1)
    raise Trouble(f"nothing answered on {server}/health within {_START_S} s")


def docker_problem() -> str | None:
    """Why Docker cannot serve as the sandbox now, in words; None when it can, after building the image if that is missing."""
    if shutil.which("docker") is None:
        return "there is no docker command here"
    try:
        info = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "docker info did not answer within 20 s"
    if info.returncode != 0:
        return "docker info finds no daemon that this user may talk to"
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, timeout=30, check=False).returncode == 0:
        return None
    print(f"  building the sandbox image {IMAGE}: once, some minutes")
    try:
        build = subprocess.run(
            [str(BIN / "gridx-worker"), "build-image"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the image {IMAGE} was not built within {_BUILD_S // 60} minutes"
    if build.returncode != 0:
        last = next((line for line in reversed(build.stdout.splitlines()) if line.strip()), "no output")
        return f"the image {IMAGE} is missing and gridx-worker build-image failed: {last.strip()[:300]}"
    return None


def agent_command(server: str, name: str, state_dir: Path, sandbox: Sandbox) -> list[str]:
    """`gridx-worker run`; its key comes in the environment (GRIDX_KEY), where `ps` does not show it."""
    command = [str(BIN / "gridx-worker"), "run", "--server", server, "--name", name, "--sandbox", sandbox, "--state-dir", str(state_dir)]
    return [*command, "--python", sys.executable] if sandbox == "process" else command


def _end(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Ends these groups: asks, asks again (an agent then gives up its attempt and says so), and after some seconds makes them."""
    for patience_s in (2, 12):
        for process in processes:
            if process.poll() is None:
                _signal_group(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
    for process in processes:
        # The head may be gone and a member of its group not.
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _end_with_parent() -> None:
    """Linux only: SIGTERM when the parent dies without having said goodbye (kill -9)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
