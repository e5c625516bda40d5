"""A private PostgreSQL cluster: own port, own folder, gone after the session. Never the machine's own server."""

import functools
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support import session

_USER = "gridx"
_START_S = 60


@dataclass(frozen=True)
class Cluster:
    folder: str
    port: int
    password: str
    version: int

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://{_USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def run(self, sql: str) -> None:
        """Runs one statement outside any transaction, as CREATE DATABASE wants it."""
        import psycopg  # imported here so that a machine without libpq can still collect the other tests

        address = self.url("postgres").replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql.encode())

    def copy(self, source: str, target: str) -> None:
        """A new database `target` with all that `source` holds, which nobody may be connected to."""
        strategy = " STRATEGY FILE_COPY" if self.version >= 15 else ""  # what older ones do anyhow, in half the time of the new default
        self.run(f"CREATE DATABASE {target} TEMPLATE {source}{strategy}")


@functools.cache
def program(name: str) -> Path | None:
    """initdb or pg_ctl: the newest under /usr/lib/postgresql, else the one on PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    if found:
        return found[-1]
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def why_unavailable() -> str | None:
    missing = [name for name in ("initdb", "pg_ctl") if program(name) is None]
    if missing:
        return f"{' and '.join(missing)} found neither under /usr/lib/postgresql nor on PATH (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and _owner() is None:
        return "PostgreSQL refuses to run as root and there is no user postgres to run it as"
    return None


def cluster() -> Cluster:
    """The session's cluster, started by whichever worker asks first."""
    note = session.folder() / "postgres.json"
    with session.only_one("postgres"):
        if not note.exists():
            note.write_text(json.dumps(asdict(_start())))
    return Cluster(**json.loads(note.read_text()))


def stop() -> None:
    """Ends the session's cluster, if there is one, and removes its files."""
    note = session.folder() / "postgres.json"
    if not note.exists():
        return
    running = Cluster(**json.loads(note.read_text()))
    _run("pg_ctl", "stop", "-D", f"{running.folder}/data", "-m", "immediate", "-w", "-t", "30")
    shutil.rmtree(running.folder, ignore_errors=True)
    note.unlink()


def _start() -> Cluster:
    folder = Path(tempfile.mkdtemp(prefix="gridx-pg-"))
    try:
        return _start_in(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _start_in(folder: Path) -> Cluster:
    password = secrets.token_hex(16)
    password_file = folder / "password"
    password_file.touch(0o600)
    password_file.write_text(password)
    owner = _owner()
    if owner is not None:
        for path in (folder, password_file):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    _run(
        *("initdb", "-D", str(data), "-U", _USER, "-A", "scram-sha-256", "--pwfile", str(password_file)),
        *("-E", "UTF8", "--locale=C", "--no-sync"),
    )
    port = _free_port()
    # Nothing here has to survive a crash of the machine, so nothing waits for the disk.
    options = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": folder,
        "max_connections": 300,
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "timezone": "UTC",
    }
    settings = " ".join(f"-c {name}={value}" for name, value in options.items())
    _run("pg_ctl", "start", "-D", str(data), "-l", str(folder / "log"), "-o", settings, "-w", "-t", str(_START_S))
    version = int((data / "PG_VERSION").read_text())
    return Cluster(str(folder), port, password, version)


def _owner() -> pwd.struct_passwd | None:
    """Whom to run PostgreSQL as: nobody else for an ordinary user, the user postgres for root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


def _run(name: str, *arguments: str) -> None:
    owner = _owner()
    # Output goes to a file: pg_ctl leaves its server behind holding the pipe, and reading that pipe to its end would wait forever.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(program(name)), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_START_S + 30,
            check=False,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
            env={**os.environ, "LC_ALL": "C", "PGOPTIONS": ""},
        )
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{name} ended with {done.returncode}:\n{output.read()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
