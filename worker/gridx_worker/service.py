"""The agent as a service of its user: systemd starts it again after a crash and after a reboot. And taking all of it away."""

import contextlib
import fcntl
import getpass
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import docker
import docker.errors

from gridx_worker.sandbox.container import LABEL, owner_of
from gridx_worker.sandbox.docker_api import forgiving

UNIT = """\
[Unit]
Description=Grid-X agent {name}
After=network-online.target docker.service
StartLimitIntervalSec=0

[Service]
ExecStart={command}
# The first signal lets the task in hand end, the second gives it back to the server: a reboot does not wait for hours.
ExecStop=/bin/sh -c 'kill -TERM $MAINPID; sleep 1; kill -TERM $MAINPID || true'
Restart=always
RestartSec=10
TimeoutStopSec=60
Nice=10
Environment=PYTHONUNBUFFERED=1
{environment}
[Install]
WantedBy=default.target
"""
KEPT = ("PATH", "DOCKER_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")
KEPT_PREFIXES = ("PIP_", "WORKER_", "GRIDX_SANDBOX_IMAGE")


class ServiceFailed(Exception):
    """The service could not be set up; the message says what to do."""


def unit_path(name: str) -> Path:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "systemd" / "user" / f"gridx-worker-{name}.service"


def write_unit(name: str, arguments: Sequence[str], key: str | None, state: Path) -> Path:
    """Writes the unit, and the key beside the agent's state (mode 0600): neither shows it in `ps`. Returns the unit's path."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if key:
        file = state / "key"
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(key + "\n")
        arguments = [*arguments, "--key-file", str(file)]
    command = shlex.join([sys.executable, "-m", "gridx_worker.cli", "run", *arguments])
    kept = {each: value for each, value in os.environ.items() if each in KEPT or each.startswith(KEPT_PREFIXES)}
    environment = "".join(f"Environment={_quoted(f'{each}={value}')}\n" for each, value in sorted(kept.items()))
    path = unit_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(UNIT.format(name=name, command=command.replace("%", "%%"), environment=environment), encoding="utf-8")
    return path


def start(name: str) -> list[str]:
    """Starts the service now and at every boot. Returns advice for what needs more rights. Raises ServiceFailed."""
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", unit_path(name).name)
    user = getpass.getuser()
    done = subprocess.run(["loginctl", "enable-linger", user], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"it ends when you log out, until you allow it: sudo loginctl enable-linger {user}"]


def stop(state: Path, *, now: bool) -> str:
    """Tells the running agent to stop after its task, or at once. Returns what was done, in words."""
    pid = running_pid(state)
    if pid is None:
        return "no agent runs here"
    for _ in range(2 if now else 1):
        os.kill(pid, signal.SIGTERM)
    return "it ends now, and gives its task back" if now else "it ends after the task in hand"


def running_pid(state: Path) -> int | None:
    """The agent that holds this state folder's lock."""
    try:
        with (state / "lock").open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(lock.read().strip() or 0) or None
    except (OSError, ValueError):
        return None
    return None


def uninstall(name: str, base: Path, *, image: str | None, say: Callable[[str], None]) -> None:
    """Takes the service, this agent's containers and state away, and with the last agent everything else. `image` None: it stays."""
    path, state = unit_path(name), (base / name).resolve()
    if path.exists():
        try:
            _systemctl("disable", "--now", path.name)
        except ServiceFailed as error:
            say(str(error))
        path.unlink()
        say(f"removed {path}")
        with contextlib.suppress(ServiceFailed):
            _systemctl("daemon-reload")
    if (pid := running_pid(state)) is not None:
        raise ServiceFailed(f"the agent still runs (process {pid}); end it with `gridx-worker stop --now`, then call this again")
    _remove_from_docker(owner_of(state), image, say)
    shutil.rmtree(state, ignore_errors=True)
    say(f"removed {state}")
    others = [entry for entry in base.iterdir() if entry.name != "venv"] if base.is_dir() else []
    if not others:
        shutil.rmtree(base, ignore_errors=True)  # the programs themselves as well: what runs now is in memory
        say(f"removed {base}")


def _remove_from_docker(owner: str, image: str | None, say: Callable[[str], None]) -> None:
    try:
        client = docker.from_env(timeout=60)
        mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}.owner={owner}"}
        for container in client.containers.list(all=True, filters=mine, ignore_removed=True):
            forgiving(lambda each=container: each.remove(force=True, v=True))
            say(f"removed the container {container.name}")
        for volume in client.volumes.list(filters=mine):
            forgiving(lambda each=volume: each.remove(force=True))
            say(f"removed the volume {volume.name}")
        if image is not None:
            forgiving(lambda: client.images.remove(image))
            say(f"removed the image {image}")
        client.close()
    except docker.errors.DockerException as error:
        say(f"Docker does not answer, so nothing was removed from it ({(str(error).splitlines() or [''])[0][:200]})")


def _systemctl(*arguments: str) -> None:
    try:
        done = subprocess.run(["systemctl", "--user", *arguments], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceFailed(f"systemctl does not run ({error}); start the agent by hand or by cron's @reboot instead") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()[:300]
        raise ServiceFailed(f"systemctl --user {' '.join(arguments)} failed: {words}")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
