"""Agents that wait for work hold their call open; one watcher per server process wakes as many of them as there are subtasks to take.

The watcher wakes, the claim decides: a woken agent that finds nothing, or whose machine does not suit, waits again at the end of the line.
Nobody polls, and a thousand waiting agents do not race for one row.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from gridx.core.db import Database
from gridx.core.wakeup import Watcher

_LOOK_AGAIN_S = 1.0
"""Wake-ups are hints, and a subtask may become due by the clock alone."""


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
        self._count_due = count_due
        self._line: deque[Ticket] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watcher = Watcher(database, self._look, name="work-board", every_s=_LOOK_AGAIN_S)
        self._dismissed = False

    def join(self) -> Ticket:
        """Take a place at the end of the line."""
        self._loop = asyncio.get_running_loop()
        ticket = Ticket()
        self._line.append(ticket)
        self._watcher.start()
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
        self._watcher.close()

    def _look(self) -> bool:
        due = self._count_due() if self._line else 0
        if due and self._loop is not None:
            self._loop.call_soon_threadsafe(self.call, due)
        return False
