"""The agent's slots for ranks: each asks for its own, and runs it beside the agent's ordinary work."""

import logging
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from gridx_protocol.messages import RankRequest, TaskReply
from gridx_worker.client import Client, Refused, Unauthorized, Unreachable
from gridx_worker.ddp.offer import Offer
from gridx_worker.ddp.runner import RankRunner
from gridx_worker.ddp.sandboxes import RankSandbox
from gridx_worker.heartbeat import Current, Heartbeat
from gridx_worker.sandbox.base import SandboxUnavailable, StopSwitch

log = logging.getLogger(__name__)

WAIT_S = 25.0
PAUSED_S = 10.0
TROUBLE_S = 30.0
_FOREVER_S = 10.0 * 365 * 86400


class RankLanes:
    """`make_sandbox` gives each slot a sandbox of its own, in a folder of its own."""

    def __init__(
        self,
        offer: Offer,
        *,
        agent_id: str,
        folder: Path,
        server: str,
        cache_bytes: int,
        heartbeat_s: float,
        certificate: bytes | None,
        make_sandbox: Callable[[Path], RankSandbox],
    ) -> None:
        self.offer, self.agent_id, self.folder, self.server = offer, agent_id, folder, server
        self.cache_bytes, self.heartbeat_s, self.certificate, self.make_sandbox = cache_bytes, heartbeat_s, certificate, make_sandbox
        self._stop = threading.Event()
        self._lanes: list[_Lane] = []

    def start(self, client: Client, on_unauthorized: Callable[[Unauthorized], None], paused: Callable[[], str | None]) -> None:
        self._lanes = [_Lane(self, slot, client, on_unauthorized, paused, self._stop) for slot in range(1, self.offer.slots + 1)]
        for lane in self._lanes:
            lane.thread.start()

    def finish(self) -> None:
        """Take no more ranks."""
        self._stop.set()

    def end(self) -> None:
        """Give up the ranks in hand."""
        for lane in self._lanes:
            lane.end()

    def stop(self) -> None:
        """Wait for the ranks in hand."""
        self._stop.set()
        for lane in self._lanes:
            lane.thread.join()


class _Lane:
    """One slot."""

    def __init__(
        self,
        lanes: RankLanes,
        slot: int,
        client: Client,
        on_unauthorized: Callable[[Unauthorized], None],
        paused: Callable[[], str | None],
        stop: threading.Event,
    ) -> None:
        self._slot, self._offer, self._client, self._stop = slot, lanes.offer, client, stop
        self._on_unauthorized, self._paused, self._heartbeat_s = on_unauthorized, paused, lanes.heartbeat_s
        folder = lanes.folder / f"rank-{slot}"
        folder.mkdir(parents=True, exist_ok=True)
        self._sandbox = lanes.make_sandbox(folder)
        self._current: Current | None = None
        self._heartbeat: Heartbeat | None = None
        self._runner = RankRunner(
            client, self._sandbox, offer=lanes.offer, server_host=urlsplit(lanes.server).hostname or "127.0.0.1",
            certificate=lanes.certificate, agent_id=lanes.agent_id, folder=folder, cache_bytes=lanes.cache_bytes, on_phase=self._beat_soon,
        )  # fmt: skip
        self.thread = threading.Thread(target=self._run, name=f"rank-slot-{slot}", daemon=True)

    def end(self) -> None:
        if current := self._current:
            current.stop.throw("shutdown", "the agent was told to stop")

    def _run(self) -> None:
        try:
            self._sandbox.prepare()
            place = f"network:{self._offer.network}" if self._offer.network else self._sandbox.place()
        except SandboxUnavailable as error:
            log.error("no ranks are run here", extra={"cause": str(error)})
            return
        try:
            while not self._stop.is_set():
                self._one_turn(place)
        finally:
            self._sandbox.close()

    def _one_turn(self, place: str) -> None:
        if self._paused():
            self._stop.wait(PAUSED_S)
            return
        request = RankRequest(
            slot=self._slot, place=place, address=self._offer.address,
            warm_job_ids=self._runner.cache.jobs(64), wait_s=WAIT_S,
        )  # fmt: skip
        try:
            reply = self._ask(request)
        except Unauthorized as error:
            self._on_unauthorized(error)
            self._stop.set()
            return
        except (Refused, Unreachable) as error:
            if not self._stop.is_set():
                log.error("the server gives no ranks", extra={"cause": str(error)})
            self._stop.wait(TROUBLE_S * random.uniform(0.9, 1.1))
            return
        if reply is None:
            return
        self._sandbox.forget(reply.ended_job_ids)
        self._runner.cache.forget(reply.ended_job_ids)
        if reply.task_id is not None and reply.lease_token is not None:
            self._work(reply, reply.task_id, reply.lease_token)

    def _ask(self, request: RankRequest) -> TaskReply | None:
        """The server holds the call open; a stop ends the wait at once, so the call runs beside it. None when told to stop."""
        answers: list[TaskReply | Exception] = []
        done = threading.Event()

        def call() -> None:
            try:
                answers.append(self._client.request_rank(request, until=time.monotonic() + _FOREVER_S))
            except Exception as error:  # carried over to the waiting thread
                answers.append(error)
            done.set()

        threading.Thread(target=call, name="ask-for-rank", daemon=True).start()
        while not done.wait(0.2):
            if self._stop.is_set():
                return None
        if isinstance(answer := answers[0], Exception):
            raise answer
        return answer

    def _work(self, task: TaskReply, task_id: int, lease_token: str) -> None:
        current = self._current = Current(task_id=task_id, lease_token=lease_token, stop=StopSwitch())
        fields = {"task_id": task_id, "job_id": task.job_id, "rank": task.gang.rank if task.gang else None, "slot": self._slot}
        log.info("rank started", extra=fields)
        heartbeat = self._heartbeat = Heartbeat(
            self._client, interval_s=self._heartbeat_s, intervals=self._set_intervals, on_unauthorized=self._on_unauthorized
        )
        heartbeat.watch(current)
        heartbeat.start()
        try:
            ended = self._runner.run(task, current)
        finally:
            self._current = None
            heartbeat.watch(None)
            heartbeat.stop()
        log.info("rank ended", extra={**fields, "result": ended})
        if ended in ("agent", "unreported"):
            self._stop.wait(5.0)

    def _beat_soon(self) -> None:
        if self._heartbeat:
            self._heartbeat.beat_soon()

    def _set_intervals(self, heartbeat_s: float, poll_s: float) -> None:
        self._heartbeat_s = heartbeat_s
