"""What every kind of background work shares: its tools, and the care for leases while it computes."""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog

from gridx.core import lease
from gridx.core.clock import Clock
from gridx.core.db import Database
from gridx.core.errors import Unavailable
from gridx.core.lease import LeaseLost
from gridx.core.settings import Settings
from gridx.storage.base import ObjectStore

WORK_LEASE_S = 60.0
MAX_WORK_FAILURES = 5
_OUTAGE_S = 5.0
_log = structlog.get_logger()


class Keeper:
    """Extends the leases of work in progress from one thread, so that a long computation keeps what it holds."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._held: dict[str, tuple[type[Any], int]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
        self._thread.start()

    @contextmanager
    def keeping(self, model: type[Any], row_id: int, token: str) -> Generator[None]:
        with self._lock:
            self._held[token] = (model, row_id)
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(token, None)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(WORK_LEASE_S / 4):
            with self._lock:
                held = list(self._held.items())
            if not held:
                continue
            try:
                with self._database.write() as session:
                    for token, (model, row_id) in held:
                        lease.extend(session, model, row_id, token, self._clock.now(), WORK_LEASE_S)
            except Exception:
                _log.warning("leases not extended", exc_info=True)


@dataclass
class Work:
    """Tools of background work. One object per process."""

    settings: Settings
    database: Database
    store: ObjectStore
    clock: Clock
    executor: Executor
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        self.keeper = Keeper(self.database, self.clock)

    @contextmanager
    def folder(self) -> Generator[Path]:
        """A scratch folder beside the store, so that a finished file moves there by rename."""
        parent = self.settings.home / "tmp"
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=parent, prefix="work-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def run_leased(work: Work, model: type[Any], row_id: int, token: str, action: Callable[[], None], give_up: Callable[[str], None]) -> None:
    """Run `action` under a lease that is kept alive. An unexpected error puts the work off, and after some tries `give_up` says why."""
    with work.keeper.keeping(model, row_id, token):
        try:
            action()
        except LeaseLost:
            _log.info("work lost", kind=model.__name__, row=row_id)
        except (Unavailable, OSError):
            # The database, the store or the disk is away or full: that is no fault of the work, however long it lasts.
            _log.warning("work put off", kind=model.__name__, row=row_id, exc_info=True)
            with work.database.write() as session:
                until = work.clock.now() + timedelta(seconds=_OUTAGE_S)
                lease.put_off(session, model, row_id, token, until, failed=False)
        except Exception as error:
            _log.error("work failed", kind=model.__name__, row=row_id, exc_info=True)
            _put_off(work, model, row_id, token, error, give_up)


def _put_off(work: Work, model: type[Any], row_id: int, token: str, error: Exception, give_up: Callable[[str], None]) -> None:
    now = work.clock.now()
    with work.database.write() as session:
        row = session.get(model, row_id)
        failures = row.work_failures + 1 if row is not None and row.work_token == token else 0
        lease.put_off(session, model, row_id, token, now + timedelta(seconds=min(2.0**failures, 60.0)), failed=True)
    if failures >= MAX_WORK_FAILURES:
        give_up(f"the server could not finish this: {type(error).__name__}: {error}"[:2000])
