"""Waking a process when another has committed something: LISTEN/NOTIFY on PostgreSQL, `PRAGMA data_version` on SQLite.

A wake-up is a hint. Whoever waits looks again after its timeout all the same, so a lost one costs time and never a job.
"""

import selectors
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Protocol

import psycopg
import structlog
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from gridx.core.db import Database

_CHANNEL = "gridx"
_SQLITE_INTERVAL_S = 0.02
_log = structlog.get_logger()


class Waiter(Protocol):
    def wait(self, timeout_s: float) -> bool:
        """Block until something was committed since the last call, or until the timeout. Returns whether it was."""
        ...

    def interrupt(self) -> None:
        """End another thread's wait, and let none that comes later last."""
        ...

    def close(self) -> None:
        """Let go of the connection. Nobody may be waiting."""
        ...


class Watcher:
    """A thread that calls `look`: at first, after every commit of anybody's, and every so often all the same, until it is closed.

    `look` returns whether there may be more: then it is called again at once. No error ends the watching: the database may be away for
    a while. `pause_s` lies between two looks, so that many commits in a row are looked at together.
    """

    def __init__(self, database: Database, look: Callable[[], bool], *, name: str, every_s: float, pause_s: float = 0.0) -> None:
        self._database, self._look, self._name = database, look, name
        self._every_s, self._pause_s = every_s, pause_s
        self._stop = threading.Event()
        self._waiter: Waiter | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, if it has not begun yet. Not to be called by two threads at once."""
        if self._thread is None:
            self._waiter = open_waiter(self._database)
            self._thread = threading.Thread(target=self._watch, args=(self._waiter,), name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End after the look in hand. Closing again changes nothing."""
        self._stop.set()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and self._thread is not None:
            waiter.interrupt()
            self._thread.join()
            waiter.close()

    def _watch(self, waiter: Waiter) -> None:
        while not self._stop.is_set():
            try:
                if not self._look():
                    waiter.wait(self._every_s)
            except Exception:
                _log.warning("cannot look", watcher=self._name, exc_info=True)
                self._stop.wait(self._every_s)
            self._stop.wait(self._pause_s)


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

    def interrupt(self) -> None:
        self._closed.set()

    def close(self) -> None:
        self._connection.close()

    def _version(self) -> int:
        return self._connection.execute("PRAGMA data_version").fetchone()[0]


class _PostgresqlWaiter:
    def __init__(self, database: Database) -> None:
        self._url = make_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection: psycopg.Connection | None = None
        self._interrupted, self._interrupt = socket.socketpair()

    def wait(self, timeout_s: float) -> bool:
        try:
            connection = self._connected()
            if _was_told(connection):
                return True
            self._sleep(timeout_s, connection.fileno())
            return _was_told(connection)
        except psycopg.Error:
            # The server is away. Waiting out the timeout keeps the caller from spinning; it looks again itself.
            self._connection = None
            self._sleep(min(timeout_s, 1.0))
            return True

    def interrupt(self) -> None:
        self._interrupt.send(b"x")

    def close(self) -> None:
        self._interrupt.close()
        self._interrupted.close()
        if self._connection is not None:
            self._connection.close()

    def _sleep(self, timeout_s: float, *files: int) -> None:
        """Until one of the files can be read, an interruption, or the timeout."""
        with selectors.DefaultSelector() as selector:
            for file in (*files, self._interrupted):
                selector.register(file, selectors.EVENT_READ)
            selector.select(timeout_s)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
            self._connection.execute(f"LISTEN {_CHANNEL}")
        return self._connection


def _was_told(connection: psycopg.Connection) -> bool:
    """Whether any notification has come; all that have are seen."""
    return bool(list(connection.notifies(timeout=0)))
