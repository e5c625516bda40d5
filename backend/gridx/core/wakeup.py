"""Waking a process when another has committed something: LISTEN/NOTIFY on PostgreSQL, `PRAGMA data_version` on SQLite.

A wake-up is a hint. Whoever waits looks again after its timeout all the same, so a lost one costs time and never a job.
"""

import sqlite3
import threading
import time
from typing import Protocol

import psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from gridx.core.db import Database

_CHANNEL = "gridx"
_SQLITE_INTERVAL_S = 0.02


class Waiter(Protocol):
    def wait(self, timeout_s: float) -> bool:
        """Block until something was committed since the last call, or until the timeout. Returns whether it was."""
        ...

    def close(self) -> None: ...


def notify(session: Session) -> None:
    """Wake all waiters when this session commits. On SQLite the commit itself does."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().exec_driver_sql(f"NOTIFY {_CHANNEL}")


def open_waiter(database: Database) -> Waiter:
    return _SqliteWaiter(database) if database.is_sqlite else _PostgresqlWaiter(database)


class _SqliteWaiter:
    def __init__(self, database: Database) -> None:
        self._connection = sqlite3.connect(make_url(database.url).database or "", check_same_thread=False)
        self._seen = self._version()
        self._closed = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            left = end - time.monotonic()
            if left <= 0 or self._closed.wait(min(_SQLITE_INTERVAL_S, left)):
                return False

    def close(self) -> None:
        self._closed.set()

    def _version(self) -> int:
        return self._connection.execute("PRAGMA data_version").fetchone()[0]


class _PostgresqlWaiter:
    def __init__(self, database: Database) -> None:
        self._url = make_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection: psycopg.Connection | None = None
        self._closed = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        try:
            connection = self._connected()
            is_woken = bool(list(connection.notifies(timeout=timeout_s, stop_after=1)))
            if is_woken:
                list(connection.notifies(timeout=0))  # one look sees what all that came are about
            return is_woken
        except psycopg.Error:
            # The server is away. Waiting out the timeout keeps the caller from spinning; it looks again itself.
            self._connection = None
            self._closed.wait(min(timeout_s, 1.0))
            return True

    def close(self) -> None:
        self._closed.set()
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
            self._connection.execute(f"LISTEN {_CHANNEL}")
        return self._connection
