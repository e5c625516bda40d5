"""What an agent keeps on disk between runs: its identity, and the lock that lets only one process be it."""

import contextlib
import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class AlreadyRunning(Exception):
    """Another process on this machine runs under the same name."""


@dataclass(frozen=True)
class Identity:
    """`server` keeps a token from being sent to another server than the one that gave it."""

    agent_id: str
    server: str
    token: str


class State:
    """The folder of one agent (mode 0700), locked while this object lives."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.folder = folder
        self._file = folder / "state.json"
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise AlreadyRunning(f"an agent runs from {folder} already; stop it, or give this one another --name") from error
        with contextlib.suppress(OSError):  # a full disk keeps no agent from its work
            os.ftruncate(self._lock, 0)
            os.write(self._lock, str(os.getpid()).encode())  # for `gridx-worker stop`

    def load(self, *, server: str) -> Identity | None:
        """The saved identity for this server; None when there is none or the file is damaged."""
        try:
            content: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
            identity = Identity(agent_id=str(content["agent_id"]), server=str(content["server"]), token=str(content["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return identity if identity.server == server else None

    def save(self, identity: Identity) -> None:
        """Written whole or not at all, mode 0600."""
        partial = self._file.with_suffix(".partial")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(identity), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._file)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the name free; harmless when repeated."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
