"""Fresh databases for tests: migrated once per session and kind, then copied, which takes milliseconds."""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from tests.support import postgres, session

Kind = Literal["sqlite", "postgresql"]

_TEMPLATE = "gridx_template"


def create(kind: Kind, folder: Path, *, migrated: bool = True) -> str:
    """A database of its own and its SQLAlchemy URL. A SQLite file lands in `folder`; a PostgreSQL one ends with its cluster."""
    if kind == "sqlite":
        path = folder / f"gridx-{secrets.token_hex(4)}.db"
        if migrated:
            shutil.copyfile(_sqlite_template(), path)
        return f"sqlite:///{path}"
    cluster = postgres.cluster()
    name = f"gridx_{secrets.token_hex(8)}"
    if not migrated:
        cluster.run(f"CREATE DATABASE {name}")
        return cluster.url(name)
    _postgresql_template(cluster)
    # One copy at a time: PostgreSQL refuses to copy a template that another session is connected to.
    with session.only_one("postgres-copy"):
        cluster.copy(_TEMPLATE, name)
    return cluster.url(name)


def drop(url: str) -> None:
    """Removes a PostgreSQL database that `create` made, whoever is still connected; a SQLite file goes with its folder."""
    if url.startswith("postgresql"):
        postgres.cluster().run(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")


def _sqlite_template() -> Path:
    path = session.folder() / "template.db"
    with session.only_one("sqlite-template"):
        if not path.exists():
            fresh = path.with_suffix(".new")
            _migrate(f"sqlite:///{fresh}")
            _fold_log(fresh)
            fresh.rename(path)
    return path


def _postgresql_template(cluster: postgres.Cluster) -> None:
    done = session.folder() / "postgres-template"
    with session.only_one("postgres-template"):
        if not done.exists():
            cluster.run(f"DROP DATABASE IF EXISTS {_TEMPLATE}")
            cluster.run(f"CREATE DATABASE {_TEMPLATE}")
            _migrate(cluster.url(_TEMPLATE))
            done.touch()


def _migrate(url: str) -> None:
    home = session.folder() / "migrate-home"
    done = subprocess.run(
        [str(Path(sys.executable).with_name("gridx")), "migrate"],
        env={**os.environ, "DATABASE_URL": url, "GRIDX_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"gridx migrate ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")


def _fold_log(path: Path) -> None:
    """Moves what still stands in SQLite's write-ahead log into the file, so that copying the file alone copies everything."""
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
