"""The heartbeat: beside training, never between. It says what the agent is doing, extends the lease, and brings cancels.

It rests while a call for work is open: the server sees by that call that the agent is there.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from gridx_protocol.messages import HeartbeatRequest, Phase
from gridx_worker.client import Client, LeaseLost, Refused, Unauthorized, Unreachable
from gridx_worker.sandbox.base import StopSwitch

log = logging.getLogger(__name__)

SHORTEST_GAP_S = 0.5


@dataclass
class Current:
    """The attempt in hand. Written by the runner, read by the heartbeat; single assignments, so it needs no lock."""

    task_id: int
    lease_token: str
    stop: StopSwitch
    phase: Phase = "DOWNLOADING"
    epoch: int | None = None
    progress: float | None = None


class Heartbeat:
    """One thread. `intervals` is told the intervals that the server sets; `on_unauthorized` that no token is accepted any more."""

    def __init__(
        self,
        client: Client,
        *,
        interval_s: float,
        intervals: Callable[[float, float], None],
        on_unauthorized: Callable[[Unauthorized], None],
    ) -> None:
        self._client = client
        self._interval_s = interval_s
        self._intervals = intervals
        self._on_unauthorized = on_unauthorized
        self._wake = threading.Event()
        self._stopping = False
        self._is_resting = False
        self._current: Current | None = None
        self._thread = threading.Thread(target=self._loop, name="heartbeat", daemon=True)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=15)

    def watch(self, current: Current | None) -> None:
        """From now on beats are about this attempt, or about none."""
        self._current = current

    @contextmanager
    def rest(self) -> Generator[None]:
        """While the block lasts, a call of the agent is open. The first beat, which brings the server's intervals, is made all the same."""
        self._is_resting = True
        try:
            yield
        finally:
            self._is_resting = False

    def beat_soon(self) -> None:
        """The attempt entered another phase: say so without waiting for the interval."""
        self._wake.set()

    def _loop(self) -> None:
        is_first = True
        while not self._stopping:
            self._wake.clear()
            started = time.monotonic()
            try:
                if is_first or not self._is_resting:
                    self._beat()
            except Exception:  # such as a full disk while a new token is saved: the next beat may do better
                log.exception("a heartbeat failed unexpectedly")
            is_first = False
            if self._wake.wait(self._interval_s * random.uniform(0.9, 1.0)) and not self._stopping:
                threading.Event().wait(max(SHORTEST_GAP_S - (time.monotonic() - started), 0))

    def _beat(self) -> None:
        current = self._current
        request = HeartbeatRequest()
        if current:
            request = HeartbeatRequest(
                task_id=current.task_id,
                lease_token=current.lease_token,
                phase=current.phase,
                epoch=current.epoch,
                progress=current.progress,
            )
        try:
            reply = self._client.heartbeat(request, until=time.monotonic() + self._interval_s)
        except LeaseLost as error:
            if current:
                current.stop.throw("cancelled", str(error))
        except Unauthorized as error:
            self._on_unauthorized(error)
        except Refused as error:
            log.warning("heartbeat refused", extra={"cause": str(error)})
        except Unreachable as error:
            log.warning("server unreachable", extra={"cause": str(error)})
        else:
            self._interval_s = max(reply.heartbeat_s, 0.05)
            self._intervals(reply.heartbeat_s, reply.poll_s)
            if reply.cancel and current:
                current.stop.throw("cancelled", reply.cancel_reason or "cancelled by the server")
