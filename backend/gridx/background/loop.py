"""The background process: one thread for each kind of work, woken when something was committed."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

import structlog

from gridx.accounts.throttle import sweep_login_failures
from gridx.aggregation.safe_load import warm_up
from gridx.background.aggregate import aggregate_next
from gridx.background.export import export_next
from gridx.background.lateness import look_after_rounds
from gridx.background.leases import expire_leases
from gridx.background.prepare import prepare_next
from gridx.background.quarantine import quarantine_suspects
from gridx.background.seal import seal_next
from gridx.background.sweep import sweep_storage
from gridx.background.verify import verify_next
from gridx.background.work import Work
from gridx.core.clock import Clock, SystemClock
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.core.wakeup import open_waiter
from gridx.datasets.uploads import sweep_uploads
from gridx.storage.base import ObjectStore

_LOOK_AGAIN_S = 5.0
"""A wake-up is a hint: this often everything is looked at all the same."""
_SWEEP_STORAGE_S = 600.0
_LATENESS_S = 2.0
_log = structlog.get_logger()


class Bell:
    """Lets many threads wait for one waiter. Each ring is seen once by each thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0

    @property
    def rings(self) -> int:
        return self._rings

    def ring(self) -> None:
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout_s: float) -> None:
        """Block until the bell rang after `seen`, or until the timeout."""
        with self._condition:
            self._condition.wait_for(lambda: self._rings != seen, timeout_s)


class Background:
    """All background work of one process. Any number of such processes share the work by leases."""

    def __init__(self, settings: Settings, database: Database, store: ObjectStore, executor: Executor, clock: Clock | None = None) -> None:
        self.work = Work(settings, database, store, clock or SystemClock(), executor)
        self._bell = Bell()
        self._stop = threading.Event()
        self._waiter = open_waiter(database)
        jobs: list[tuple[str, Callable[[], object]]] = [
            ("waiter", self._listen),
            ("prepare", lambda: self._drain("prepare", prepare_next)),
            *((f"verify-{index}", lambda: self._drain("verify", verify_next)) for index in range(max(1, settings.workers))),
            ("aggregate", lambda: self._drain("aggregate", aggregate_next)),
            ("seal", lambda: self._drain("seal", seal_next)),
            ("export", lambda: self._drain("export", export_next)),
            ("lateness", lambda: self._every(_LATENESS_S, "lateness", lambda: look_after_rounds(self.work))),
            ("leases", lambda: self._every(settings.sweep_s, "leases", lambda: expire_leases(self.work))),
            ("quarantine", lambda: self._every(settings.sweep_s, "quarantine", lambda: quarantine_suspects(self.work))),
            ("sweep", lambda: self._every(_SWEEP_STORAGE_S, "sweep", self._sweep)),
        ]
        self._threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in jobs]

    def start(self) -> None:
        warm_up()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the work in hand."""
        self._stop.set()
        self._bell.ring()
        self._waiter.interrupt()
        for thread in self._threads:
            thread.join()
        self._waiter.close()
        self.work.keeper.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            if self._guard("waiter", lambda: self._waiter.wait(1.0)):
                self._bell.ring()

    def _drain(self, name: str, step: Callable[[Work], bool]) -> None:
        while not self._stop.is_set():
            seen = self._bell.rings
            while not self._stop.is_set() and self._guard(name, lambda: step(self.work)):
                pass
            if not self._stop.is_set():
                self._bell.wait(seen, _LOOK_AGAIN_S)

    def _every(self, seconds: float, name: str, action: Callable[[], object]) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self._guard(name, action)
            self._stop.wait(max(0.1, seconds - (time.monotonic() - begun)))

    def _guard(self, name: str, action: Callable[[], object]) -> bool:
        """Whether the action did something. No error ends a thread: the database may be away for a while."""
        try:
            return bool(action())
        except Exception:
            _log.error("background error", work=name, exc_info=True)
            self._stop.wait(1.0)
            return False

    def _sweep(self) -> None:
        now = self.work.clock.now()
        sweep_uploads(self.work.settings.home, now)
        with self.work.database.write() as session:
            sweep_login_failures(session, now)
        sweep_storage(self.work)
