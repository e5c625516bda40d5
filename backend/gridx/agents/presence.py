"""When agents were last heard of: noted in memory, written in one batch every ten seconds.

An open call for work counts as hearing of its agent for as long as it lasts. Each API process writes what it heard itself.
"""

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta

import structlog

from gridx.agents.service import AgentActor, note_seen
from gridx.core.clock import Clock
from gridx.core.db import Database

_BATCH_S = 10.0
_log = structlog.get_logger()


class Presence:
    """What one process heard of agents and has not written yet. Its methods may be called from any thread."""

    def __init__(self, database: Database, clock: Clock, offline_after_s: float) -> None:
        self._database, self._clock = database, clock
        self._batch_s = min(_BATCH_S, offline_after_s / 3)
        # Older than this, a row would make its agent look offline before the next batch comes.
        self._urgent = timedelta(seconds=offline_after_s - self._batch_s)
        self._heard: dict[str, datetime] = {}
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, agent: AgentActor, now: datetime) -> None:
        """Note a call of an agent. One that was silent for long is written before its call goes on: it is back. No session may be open."""
        self._note({agent.id: now})
        if agent.last_seen_at is not None and now - agent.last_seen_at >= self._urgent:
            with self._writing:
                if agent.id in self._heard:  # else another call took it along: a thousand that come back at once cost a few statements
                    self._write({})

    @contextmanager
    def open_call(self, agent_id: str) -> Generator[None]:
        """While the block lasts, its agent is there."""
        with self._lock:
            self._open[agent_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[agent_id] -= 1
                if self._open[agent_id] <= 0:
                    del self._open[agent_id]
            self._note({agent_id: self._clock.now()})

    def flush(self) -> None:
        """Write what was heard since the last time, in one transaction. What cannot be written now is kept for the next time."""
        with self._writing:
            with self._lock:
                present = dict.fromkeys(self._open, self._clock.now())
            self._write(present)

    def close(self) -> None:
        """Write the rest and end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _note(self, heard: dict[str, datetime]) -> None:
        with self._lock:
            for agent_id, at in heard.items():
                self._heard[agent_id] = max(at, self._heard.get(agent_id, at))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="presence", daemon=True)
                self._thread.start()

    def _write(self, present: dict[str, datetime]) -> None:
        with self._lock:
            heard, self._heard = self._heard | present, {}
        if not heard:
            return
        try:
            with self._database.write() as session:
                note_seen(session, heard)
        except Exception:
            self._note(heard)
            raise

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._batch_s)
            try:
                self.flush()
            except Exception:
                _log.warning("cannot write when agents were seen", exc_info=True)
