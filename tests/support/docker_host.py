"""Docker for tests: the daemon that is there, or one that root starts for this session, and the sandbox image."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support import session

IMAGE = "secure-executor-base"
_BASE = "python:3.11-slim"
_ROOT = Path(__file__).resolve().parents[2]
_START_S = 60
_BUILD_S = 1500


def why_unavailable() -> str | None:
    """None when a daemon answers, after starting one where root may; else why there is none."""
    if shutil.which("docker") is None:
        return "there is no docker command (Debian: apt-get install docker.io)"
    with session.only_one("docker"):
        if _answers():
            return None
        if os.geteuid() != 0:
            return "no Docker daemon answers, and only root can start one"
        if shutil.which("dockerd") is None:
            return "no Docker daemon answers, and there is no dockerd to start"
        return _start_daemon()


def ensure_image() -> str:
    """The sandbox image's name, after building it when it is missing.

    Raises:
        RuntimeError: it cannot be built; the message holds the end of the output.
    """
    with session.only_one("image"):
        if not has_image(IMAGE):
            if not has_image(_BASE) and not _pull_base():
                _build([str(_ROOT / "scripts" / "standin-base-image")])
            _build([str(Path(sys.executable).with_name("gridx-worker")), "build-image"])
    return IMAGE


def stop() -> None:
    """Stops the daemon if this session started it."""
    note = session.folder() / "dockerd.pid"
    if not note.exists():
        return
    pid = int(note.read_text())
    note.unlink()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(200):
            if _gone(pid):
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)


def _gone(pid: int) -> bool:
    """Whether the process has ended. It may be our own child, which stays a zombie until it is waited for, or another worker's."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    os.kill(pid, 0)
    return False


def _answers() -> bool:
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=15, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _start_daemon() -> str | None:
    log = session.folder() / "dockerd.log"
    with log.open("wb") as output:
        # A session of its own: Ctrl-C in the terminal must not end it before the containers are cleared away.
        daemon = subprocess.Popen(["dockerd"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            return f"dockerd ended with {daemon.returncode}: {log.read_text()[-500:]}"
        if _answers():
            (session.folder() / "dockerd.pid").write_text(str(daemon.pid))
            return None
        time.sleep(0.25)
    daemon.kill()
    daemon.wait()
    return f"dockerd did not answer within {_START_S} s: {log.read_text()[-500:]}"


def has_image(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True, timeout=30, check=False).returncode == 0


def _pull_base() -> bool:
    try:
        return subprocess.run(["docker", "pull", "--quiet", _BASE], capture_output=True, timeout=120, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _build(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_BUILD_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
