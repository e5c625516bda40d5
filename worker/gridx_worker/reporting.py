"""Sends an attempt's metrics and log lines while it runs: one thread, about one batch a second."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from gridx_protocol.messages import LogsRequest, MetricPoint, MetricsRequest
from gridx_worker.client import Client, LeaseLost, Refused, Unreachable
from gridx_worker.heartbeat import Current
from gridx_worker.stream import BoundedLog, OutputSplitter, read_point

log = logging.getLogger(__name__)

BATCH_S = 1.0
TEXT_CHARACTERS = 32768
POINTS = 500
WAITING_POINTS = 20_000
LAST_SEQ = 1_000_000
RECENT_CHARACTERS = 8192
SHUTDOWN_PATIENCE_S = 10.0
LAST_CALL_S = 15.0
"""So long is a call waited for that was begun before the deadline: less than the server takes an attempt's end after it."""


class Reporter:
    """Takes a script's output (any thread) and streams it to the server until close().

    What the server cannot take now is kept, within bounds, and sent later; nothing here ever ends or slows the training.
    """

    def __init__(
        self,
        client: Client,
        current: Current,
        *,
        mark: str,
        log_bytes: int,
        epochs: int | None,
        deadline: float,
        on_started: Callable[[], None],
        batch_s: float = BATCH_S,
    ) -> None:
        self.last: MetricPoint | None = None
        self.error: dict[str, Any] | None = None
        self._client, self._current = client, current
        self._deadline, self._batch_s, self._epochs = deadline, batch_s, epochs
        self._on_started = on_started
        self._lock = threading.Lock()
        self._log = BoundedLog(log_bytes)
        self._recent = ""
        self._points: deque[MetricPoint] = deque(maxlen=WAITING_POINTS)
        self._seq = 0
        self._offset = 0
        self._unsent = ""
        self._refused: set[str] = set()
        self._done = threading.Event()
        self._sent = threading.Event()
        self._splitter = OutputSplitter(mark, on_text=self._text, on_event=self._event)
        self._thread = threading.Thread(target=self._loop, name="reporting", daemon=True)
        self._thread.start()

    def feed(self, data: bytes) -> None:
        with self._lock:
            self._splitter.feed(data)

    def close(self, *, patience_s: float) -> None:
        """Nothing more comes. What is left goes on being sent, for at most that long; `wait` waits for it."""
        with self._lock:
            self._splitter.close()
            self._log.close()
        self._deadline = min(self._deadline, time.monotonic() + patience_s)
        self._done.set()

    def wait(self) -> None:
        """After `close`: until everything is sent, or its time is over, which an order to stop shortens."""
        stop = self._current.stop
        stop.on_throw(self._sent.set)
        self._sent.wait(max(self._deadline - time.monotonic(), 0.0) + LAST_CALL_S)
        if stop.reason:
            self._deadline = min(self._deadline, time.monotonic() + SHUTDOWN_PATIENCE_S)
            self._thread.join(timeout=SHUTDOWN_PATIENCE_S)

    def recent(self, count: int) -> str:
        """The script's last lines of output, at most `count` characters."""
        with self._lock:
            lines = self._recent.splitlines()
        return "\n".join(line[:500] for line in lines if line.strip())[-count:].strip()

    def _text(self, text: str) -> None:
        self._log.add(text)
        self._recent = (self._recent + text)[-RECENT_CHARACTERS:]

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "started":
                self._on_started()
            case "error":
                self.error = event
            case "report" if self._seq <= LAST_SEQ:
                self.last = read_point(self._seq, event)
                self._seq += 1
                self._points.append(self.last)
                self._current.epoch = self.last.epoch
                if self.last.epoch is not None and self._epochs:
                    self._current.progress = min(self.last.epoch / self._epochs, 1.0)
            case _:
                pass

    def _loop(self) -> None:
        try:
            while not self._done.wait(self._batch_s):
                self._send()
            self._send()
        finally:
            self._sent.set()

    def _send(self) -> None:
        """Everything that waits. Tries go on for a few seconds; what failed waits for the next batch."""
        try:
            while "metrics" not in self._refused and (points := self._some_points()):
                self._send_points(points)
            while "logs" not in self._refused and (text := self._some_text()):
                self._send_text(text)
        except LeaseLost as error:
            self._refused |= {"metrics", "logs"}
            self._current.stop.throw("cancelled", str(error))
        except Unreachable as error:
            log.info("reports wait for the server", extra={"cause": str(error)})

    def _send_points(self, points: list[MetricPoint]) -> None:
        request = MetricsRequest(task_id=self._current.task_id, lease_token=self._current.lease_token, points=points)
        try:
            self._client.metrics(request, until=self._patience())
        except Refused as error:
            self._refuse("metrics", error)
        with self._lock:
            while self._points and self._points[0].seq <= points[-1].seq:
                self._points.popleft()

    def _send_text(self, text: str) -> None:
        request = LogsRequest(task_id=self._current.task_id, lease_token=self._current.lease_token, offset=self._offset, text=text)
        try:
            self._client.logs(request, until=self._patience())
        except Refused as error:
            self._refuse("logs", error)
        except Unreachable:
            with self._lock:
                self._unsent = text
            raise
        self._offset += len(text.encode())

    def _some_points(self) -> list[MetricPoint]:
        with self._lock:
            return [self._points[index] for index in range(min(len(self._points), POINTS))]

    def _some_text(self) -> str:
        with self._lock:
            text, self._unsent = self._unsent, ""
            return text or self._log.take(TEXT_CHARACTERS)

    def _patience(self) -> float:
        return min(self._deadline, time.monotonic() + 5) if not self._done.is_set() else self._deadline

    def _refuse(self, what: str, error: Refused) -> None:
        log.warning("the server takes no more of these", extra={"what": what, "cause": str(error)})
        self._refused.add(what)
