"""The agent's main loop: register, ask for work, run it, ask again."""

import contextlib
import logging
import queue
import random
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from rich.console import Console

from gridx_protocol.messages import FailRequest, RegisterRequest, TaskReply, TaskRequest
from gridx_worker import hardware
from gridx_worker.client import CallFailed, Client, Refused, Unauthorized, Unreachable
from gridx_worker.config import Config
from gridx_worker.controls import Gate, Load
from gridx_worker.display import Display
from gridx_worker.heartbeat import Current, Heartbeat
from gridx_worker.runner import Runner
from gridx_worker.sandbox.base import Sandbox, SandboxInfo, StopSwitch
from gridx_worker.standing import Standing
from gridx_worker.state import Identity, State

log = logging.getLogger(__name__)

RENEW_GAP_S = 30.0
REAP_S = 60.0
WAIT_S = 25.0
PAUSED_S = 10.0
QUIET_S = 1.0
GIVE_BACK_S = 5.0
LONGEST_TROUBLE_S = 300.0
UNREGISTERED = (
    "this agent is not registered yet; give it an enrolment key (its provider makes one with POST /agent/keys) with --key or GRIDX_KEY"
)
FOREVER_S = 10.0 * 365 * 86400


class Lanes(Protocol):
    """The agent's slots for ranks of synchronous training (ddp/lanes.py). `finish`: take no more; `end`: give up what is in hand."""

    def start(self, client: Client, on_unauthorized: Callable[[Unauthorized], None], paused: Callable[[], str | None]) -> None: ...

    def finish(self) -> None: ...

    def end(self) -> None: ...

    def stop(self) -> None: ...


class CannotRun(Exception):
    """The agent has to end with exit code 1; the message says what to do."""


class Agent:
    """One registered machine. run() blocks until the agent is stopped; shut_down() may come from any thread or signal handler."""

    def __init__(
        self,
        config: Config,
        sandbox: Sandbox,
        state: State,
        *,
        client: Client | None = None,
        console: Console | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self._config, self._sandbox, self._state = config, sandbox, state
        self._lanes = lanes
        self._stop = threading.Event()
        self._answers: queue.SimpleQueue[TaskReply | Exception] = queue.SimpleQueue()
        self._client = client or Client(config.server, stop=self._stop)
        self._client.renew = self._renew
        self._renewing = threading.Lock()
        self._renewed_at = -FOREVER_S
        self._poll_s = config.poll_s
        self._troubles = 0
        self._current: Current | None = None
        self._end: Exception | None = None
        self._info: SandboxInfo | None = None
        self._heartbeat = Heartbeat(
            self._client, interval_s=config.heartbeat_s, intervals=self._set_intervals, on_unauthorized=self._unauthorized
        )
        self._display = Display(console or Console(stderr=True, force_terminal=False))
        self._standing = Standing(self._client, state.folder, config.accepts, self._display.idle)
        self._gate = Gate(hours=config.hours, most_busy=config.most_busy, load=Load(sandbox.roots))
        self._runner = Runner(
            self._client,
            sandbox,
            agent_id=config.name,
            folder=state.folder,
            cache_bytes=config.cache_bytes,
            on_phase=self._heartbeat.beat_soon,
        )

    def run(self) -> None:
        """Raises CannotRun when the server accepts neither token nor key, SandboxUnavailable when this machine cannot run jobs."""
        self._info = self._sandbox.prepare()
        reaper = threading.Thread(target=self._reap, name="reaper", daemon=True)
        try:
            self._log_in()
            self._heartbeat.start()
            reaper.start()
            self._display.open()
            self._standing.tell(None, at_once=True)
            self._sandbox.idle()
            if self._lanes:
                self._lanes.start(self._client, self._unauthorized, self._gate.why_closed)
            while not self._stop.is_set():
                self._one_turn()
            if self._end:
                raise self._end
        finally:
            self._stop.set()
            if self._lanes:
                self._lanes.stop()
            self._display.close()
            if self._heartbeat.running:
                self._heartbeat.stop()
            self._sandbox.close()

    def shut_down(self) -> None:
        """First call: no new work, the current attempt is finished. Second: it is killed and reported."""
        if not self._stop.is_set():
            self._stop.set()
            self._answers.put(Unreachable("told to stop"))
            if self._lanes:
                self._lanes.finish()
            log.info("stopping after the current attempt; a second signal ends it now")
            return
        if self._lanes:
            self._lanes.end()
        if current := self._current:
            current.stop.throw("shutdown", "the agent was told to stop")

    def handle_signals(self) -> None:
        """SIGTERM and SIGINT become shut_down(). Main thread only."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.shut_down()

        signal.signal(signal.SIGTERM, handle)
        signal.signal(signal.SIGINT, handle)

    def _one_turn(self) -> None:
        paused = self._gate.why_closed()
        if self._troubles and not paused:
            paused = self._sandbox.why_unwell()  # such as Docker being restarted: taking work would only spend its tries
        self._standing.tell(paused)
        if paused:
            self._stop.wait(_jitter(PAUSED_S))
            return
        try:
            reply = self._wait_for_work()
        except Unreachable:
            return  # told to stop
        except Unauthorized as error:
            self._unauthorized(error)
            return
        except Refused as error:
            log.error("the server refuses to give work", extra={"cause": str(error)})
            self._stop.wait(_jitter(max(self._poll_s, 5.0)))
            return
        if reply.ended_job_ids:
            self._sandbox.forget(reply.ended_job_ids)
            self._runner.cache.forget(reply.ended_job_ids)
        if reply.task_id is None or reply.lease_token is None:
            self._sandbox.idle()
            self._stop.wait(_jitter(self._poll_s if reply.poll_after_s is None else reply.poll_after_s))
            return
        self._work(reply, reply.task_id, reply.lease_token)

    def _wait_for_work(self) -> TaskReply:
        """The server holds the call open until there is work. A signal ends the wait at once, so the call runs beside it.

        Raises Unreachable when told to stop; else as the client's request_task does.
        """
        request = TaskRequest(warm_job_ids=self._runner.cache.jobs(64), wait_s=WAIT_S, accept=self._config.accepts)
        with self._heartbeat.rest():
            threading.Thread(target=self._ask, args=(request,), name="ask-for-work", daemon=True).start()
            try:
                answer = self._answers.get(timeout=QUIET_S)
            except queue.Empty:  # time to make ready for the next job
                self._sandbox.idle()
                answer = self._answers.get()
        if isinstance(answer, TaskReply):
            return answer
        raise answer

    def _ask(self, request: TaskRequest) -> None:
        try:
            reply = self._client.request_task(request, until=time.monotonic() + FOREVER_S)
        except Exception as error:  # carried over to the waiting thread
            self._answers.put(error)
            return
        if self._stop.is_set() and reply.task_id is not None and reply.lease_token is not None:
            # The signal came first: what the server gave meanwhile goes back at once.
            back = FailRequest(task_id=reply.task_id, lease_token=reply.lease_token, kind="shutdown", reason="the agent was told to stop")
            with contextlib.suppress(CallFailed):
                self._client.fail(back, until=time.monotonic() + GIVE_BACK_S)
            return
        self._answers.put(reply)

    def _work(self, task: TaskReply, task_id: int, lease_token: str) -> None:
        started = time.monotonic()
        current = Current(task_id=task_id, lease_token=lease_token, stop=StopSwitch())
        fields = {"task_id": task_id, "job_id": task.job_id, "attempt": task.attempt}
        log.info("attempt started", extra={**fields, "round": task.round, "rows": task.rows})
        self._current = current
        self._heartbeat.watch(current)
        try:
            with self._display.work(task, current):
                ended = self._runner.run(task, current)
        finally:
            self._heartbeat.watch(None)
            self._current = None
        log.info("attempt ended", extra={**fields, "result": ended, "seconds": round(time.monotonic() - started, 2)})
        if ended not in ("agent", "unreported"):
            self._troubles = 0
            return
        # This machine's own trouble: a broken one must not take work away from the others at full speed.
        self._troubles += 1
        self._stop.wait(_jitter(min(self._poll_s * 2**self._troubles, LONGEST_TROUBLE_S)))

    def _log_in(self) -> None:
        identity = self._state.load(server=self._config.server)
        if identity and identity.agent_id == self._config.name:
            self._client.token = identity.token
            log.info("continuing", extra={"agent_id": identity.agent_id})
            return
        if not self._config.key:
            raise CannotRun(UNREGISTERED)
        try:
            self._register(self._config.key)
        except Refused as error:
            raise CannotRun(_advice(error)) from error

    def _register(self, key: str) -> str:
        assert self._info is not None
        measured = hardware.measure(self._info, self._config.limits, self._state.folder, self._config.disk_bytes)
        request = RegisterRequest(agent_id=self._config.name, hardware=measured, profile=self._standing.profile())
        reply = self._client.register(key, request, until=time.monotonic() + FOREVER_S)
        self._state.save(Identity(agent_id=reply.agent_id, server=self._config.server, token=reply.token))
        self._client.token = reply.token
        self._set_intervals(reply.heartbeat_s, reply.poll_s)
        log.info("registered", extra={"agent_id": reply.agent_id})
        return reply.token

    def _renew(self, refused: str) -> str | None:
        """A token was refused: forget it and register anew with the key, once; whoever comes second uses the first one's token."""
        with self._renewing:
            if self._client.token != refused:
                return self._client.token
            self._state.forget()
            if not self._config.key or time.monotonic() - self._renewed_at < RENEW_GAP_S:
                return None
            self._renewed_at = time.monotonic()
            log.warning("the server refused the saved token; registering again")
            return self._register(self._config.key)

    def _unauthorized(self, error: Refused) -> None:
        self._end = CannotRun(_advice(error))
        self._stop.set()
        self._answers.put(Unreachable("no longer known to the server"))
        if current := self._current:
            current.stop.throw("cancelled", "the server no longer knows this agent")

    def _set_intervals(self, heartbeat_s: float, poll_s: float) -> None:
        self._poll_s = max(poll_s, 0.0)

    def _reap(self) -> None:
        while not self._stop.wait(REAP_S):
            try:
                self._sandbox.reap()
            except Exception:
                log.exception("cleaning up failed; the next try comes in a minute")


def _advice(error: Refused) -> str:
    if error.status == 409:
        return f"{error}. Give this agent another --name"
    if error.status == 401:
        return (
            f"the server refuses this agent ({error}). Its enrolment key was revoked or is wrong, or another machine runs under its name. "
            "Make a new key with POST /agent/keys and start again with --key"
        )
    return f"the server refuses this agent: {error}"


def _jitter(seconds: float) -> float:
    return seconds * random.uniform(0.9, 1.1)
