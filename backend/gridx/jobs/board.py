"""Agents that wait for work hold their call open; one watcher per server process wakes as many of them as there are subtasks to take.

The watcher wakes, the claim decides: a woken agent that finds nothing, or whose machine does not suit, waits again at the end of the line.
Nobody polls, and a thousand waiting agents do not race for one row.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable

import structlog

from gridx.core.db import Database
from gridx.core.wakeup import open_waiter

_LOOK_AGAIN_S = 1.0
"""Wake-ups are hints, and a subtask may become due by the clock alone."""
_log = structlog.get_logger()


class Ticket:
    """A place in the line. It may be called before anybody waits on it: no wake-up is lost between looking and waiting."""

    def __init__(self) -> None:
        self._called = asyncio.Event()

    def call(self) -> None:
        self._called.set()

    async def wait(self, timeout_s: float) -> bool:
        """Until the ticket is called, or so many seconds. Returns whether it was called."""
        try:
            await asyncio.wait_for(self._called.wait(), timeout_s)
        except TimeoutError:
            return False
        return True


class Board:
    """The line of waiting agents in one server process. All methods but `close` belong to the event loop's thread."""

    def __init__(self, database: Database, count_due: Callable[[], int]) -> None:
        self._database = database
        self._count_due = count_due
        self._line: deque[Ticket] = deque()
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._dismissed = False

    def join(self) -> Ticket:
        """Take a place at the end of the line."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._watch, name="work-board", daemon=True)
            self._thread.start()
        ticket = Ticket()
        self._line.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place up. One that was called already is no longer in the line."""
        if ticket in self._line:
            self._line.remove(ticket)

    def call(self, count: int) -> None:
        """Wake the first `count` in the line."""
        for _ in range(min(count, len(self._line))):
            self._line.popleft().call()

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def is_dismissed(self) -> bool:
        return self._dismissed

    def dismiss(self) -> None:
        """The server is about to end: nobody waits any more. May be called from a signal handler."""
        self._dismissed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self.call(len(self._line)))

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        waiter = open_waiter(self._database)
        while not self._stop.is_set():
            try:
                waiter.wait(_LOOK_AGAIN_S)
                due = self._count_due() if self._line else 0
            except Exception:
                _log.warning("cannot look for work", exc_info=True)
                self._stop.wait(_LOOK_AGAIN_S)
                continue
            if due and self._loop is not None and not self._stop.is_set():
                self._loop.call_soon_threadsafe(self.call, due)
        waiter.close()
