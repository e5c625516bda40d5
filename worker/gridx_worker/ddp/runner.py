"""One rank from its registration to its report."""

import contextlib
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import psutil

from gridx_protocol import orchestrator_pb2 as wire
from gridx_protocol.messages import CheckpointRequest, CheckpointUrlRequest, GangTask, TaskReply
from gridx_worker.client import CallFailed, Client, LeaseLost
from gridx_worker.ddp.handshake import Listener, Watch, try_peers
from gridx_worker.ddp.offer import Offer
from gridx_worker.ddp.rendezvous import Access, Beats, OutOfPatience, Place, Progress, Refused, Rendezvous, Stop
from gridx_worker.ddp.sandboxes import GANG_VARIABLE, RankSandbox
from gridx_worker.files import LARGEST_INPUT, Fetch
from gridx_worker.heartbeat import Current
from gridx_worker.reporting import Reporter
from gridx_worker.runner import Failure, Runner, explain, script_environment
from gridx_worker.sandbox.base import SandboxUnavailable, Stopped, Work
from gridx_worker.sandbox.output import BadOutput

log = logging.getLogger(__name__)

MASTER_PORT = 29500
ABORT_S = 10.0
LOOPBACK = "127.0.0.1"


class RankReporter(Reporter):
    """A reporter that also tells the rank's progress and its checkpoints."""

    def __init__(self, *arguments: Any, progress: Progress, on_checkpoint: Callable[[int], None], **options: Any) -> None:
        self._progress, self._on_checkpoint = progress, on_checkpoint
        super().__init__(*arguments, **options)

    def _event(self, event: dict[str, Any]) -> None:
        super()._event(event)
        if event.get("event") == "checkpoint" and isinstance(number := event.get("number"), int) and 0 < number < 2**31:
            self._on_checkpoint(number)
        point = self.last
        if event.get("event") == "report" and point is not None:
            self._progress.epoch = point.epoch if point.epoch is not None else self._progress.epoch
            self._progress.loss = point.loss if point.loss is not None else self._progress.loss
            self._progress.samples_per_s = point.more.get("samples_per_s", self._progress.samples_per_s)
            self._progress.step = max(int(point.more.get("step", self._progress.step)), 0)


class RankRunner(Runner):
    """Runs ranks, one at a time. `server_host` is where the orchestrator listens."""

    def __init__(
        self, client: Client, sandbox: RankSandbox, *, offer: Offer, server_host: str, certificate: bytes | None, **options: Any
    ) -> None:
        super().__init__(client, sandbox, **options)
        self._ranks, self._offer, self._host, self._certificate = sandbox, offer, server_host, certificate

    def _run(self, task: TaskReply, current: Current, folder: Path, deadline: float) -> str:
        gang = task.gang
        if gang is None:
            raise Failure("agent", "the server gave a rank without its gang")
        stop = threading.Event()
        current.stop.on_throw(stop.set)
        access = Access(lambda: self._client.token or "", current.task_id, current.lease_token)
        target = f"{self._host}:{gang.orchestrator_port}"
        certificate = (self._certificate or b"") if gang.orchestrator_is_secure else None
        rendezvous = Rendezvous(target, worker_id=self._agent_id, access=access, certificate=certificate)
        try:
            return self._in_gang(task, gang, current, folder, deadline, rendezvous, stop)
        except Stop as error:
            current.stop.throw("cancelled", str(error))
            raise Stopped(str(error)) from error
        except Refused as error:
            current.stop.check()
            if error.code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAUTHENTICATED):
                raise LeaseLost(str(error)) from error
            raise Failure("agent", f"the orchestrator refuses this rank: {error}") from error
        except OutOfPatience as error:
            current.stop.check()
            raise Failure("agent", f"{error} ({target})") from error
        finally:
            rendezvous.close()

    def _in_gang(
        self,
        task: TaskReply,
        gang: GangTask,
        current: Current,
        folder: Path,
        deadline: float,
        rendezvous: Rendezvous,
        stop: threading.Event,
    ) -> str:
        """Between machines something answers on a port of this rank as long as it lasts: before training the others try it, and during."""
        with contextlib.ExitStack() as stack:
            listener: Listener | None = None
            if self._offer.network is not None:
                listener = stack.enter_context(Listener(self._offer.address, self._offer.ports))
            handshake_port = listener.port if listener else 0
            place = rendezvous.register(
                address=self._offer.address, port=self._master_port(), handshake_port=handshake_port, until=deadline, stop=stop
            )
            requirements = self._download(task, current, folder, deadline)
            self._fetch_checkpoint(task, gang, current, folder, deadline)
            packages = None
            if requirements:
                self._enter(current, "INSTALLING")
                limits = task.limits
                packages = self._sandbox.install(
                    requirements, cap_s=limits.install_s, cap_bytes=limits.install_bytes, deadline=deadline, stop=current.stop
                )
            peers: list[tuple[int, str, int]] = []
            place = rendezvous.wait_for_all(
                place, until=deadline, stop=stop, reach=lambda found: _reach(found, peers) if listener else ([], [])
            )
            if peers:
                stack.enter_context(Watch(peers, lambda words: self._abort(rendezvous, current, words)))
            mark = secrets.token_hex(16)
            output_name = "model.pth" if place.rank == 0 else ""
            work = Work(
                agent_id=self._agent_id, job_id=task.job_id or 0, task_id=current.task_id, attempt=task.attempt, input=folder / "input",
                output_name=output_name, output=folder / "model.pth", output_bytes=task.limits.output_bytes, arguments=task.arguments,
                environment=script_environment(task, mark) | self._environment(gang, place), deadline=deadline, packages=packages,
            )  # fmt: skip
            return self._in_step(task, current, work, mark, place, rendezvous)

    def _in_step(self, task: TaskReply, current: Current, work: Work, mark: str, place: Place, rendezvous: Rendezvous) -> str:
        """The training itself, with its heartbeats, and its report."""
        progress = Progress()
        courier = Courier(self._client, self._ranks, current, work)
        self.make_reporter = lambda *arguments, **options: RankReporter(
            *arguments, progress=progress, on_checkpoint=courier.call if place.rank == 0 else _ignore, **options
        )
        with Beats(rendezvous, progress, lambda reason: current.stop.throw("cancelled", reason)), courier:
            outcome, reporter = self._train(task, current, work, mark)
            if outcome.stopped:
                raise Stopped(outcome.reason)
            if outcome.kind:
                raise Failure(outcome.kind, explain(outcome, reporter), outcome.exit_code)
            if place.rank == 0:
                return self._deliver(current, work, outcome, reporter, work.deadline)
            reporter.wait()
            accuracy = reporter.last.accuracy if reporter.last else None
            never = threading.Event()  # the outcome is reported even while shutting down
            rendezvous.leave(train_s=outcome.seconds, progress=progress, accuracy=accuracy, until=work.deadline, stop=never)
            return "ended well"

    def _fetch_checkpoint(self, task: TaskReply, gang: GangTask, current: Current, folder: Path, deadline: float) -> None:
        if not gang.checkpoint_url:
            return
        fetch = Fetch(
            url=gang.checkpoint_url, sha256=gang.checkpoint_sha256, cap=LARGEST_INPUT, until=deadline, check=current.stop.check
        )  # fmt: skip
        try:
            self.cache.fetch(self._client, task.job_id or 0, fetch, folder / "input" / "checkpoint.pth")
        except CallFailed as error:
            raise Failure("agent", f"the checkpoint could not be downloaded: {error}") from error

    def _environment(self, gang: GangTask, place: Place) -> dict[str, str]:
        interface = _interface(self._offer.address)
        shared = {GANG_VARIABLE: f"{gang.gang_id}-{gang.secret}", "GRIDX_MODE": "ddp", "GRIDX_BACKEND": gang.backend}
        interfaces = dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"), interface) if interface else {}
        return place.environment() | shared | interfaces

    def _master_port(self) -> int:
        """Where rank 0 would listen."""
        if self._offer.network is not None:
            return _free_port(self._offer.address, self._offer.ports) or MASTER_PORT
        if self._ranks.place().startswith("docker:"):
            return MASTER_PORT  # nobody else is in the gang's network
        return _free_port(LOOPBACK, (MASTER_PORT, MASTER_PORT)) or _free_port(LOOPBACK, (0, 0))

    def _abort(self, rendezvous: Rendezvous, current: Current, words: str) -> None:
        log.warning("another rank cannot be reached", extra={"task_id": current.task_id, "cause": words})
        with contextlib.suppress(Refused, OutOfPatience):
            rendezvous.abort(words, until=time.monotonic() + ABORT_S, stop=threading.Event())
        current.stop.throw("cancelled", words)


class Courier:
    """Uploads the newest checkpoint while training goes on, one at a time; those in between are passed over."""

    def __init__(self, client: Client, sandbox: RankSandbox, current: Current, work: Work) -> None:
        self._client, self._sandbox, self._current, self._work = client, sandbox, current, work
        self._wake = threading.Event()
        self._end = False
        self._number = 0
        self._thread = threading.Thread(target=self._loop, name="checkpoints", daemon=True)

    def call(self, number: int) -> None:
        """A checkpoint lies there. Any thread."""
        self._number = number
        self._wake.set()

    def __enter__(self) -> "Courier":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end = True
        self._wake.set()
        self._thread.join(timeout=30)

    def _loop(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._end or self._current.stop.reason:
                return
            try:
                self._send(self._number)
            except (BadOutput, SandboxUnavailable, CallFailed, Stopped, OSError) as error:
                log.info("a checkpoint was not uploaded", extra={"task_id": self._current.task_id, "cause": str(error)[:300]})

    def _send(self, number: int) -> None:
        target = self._work.output.with_name("checkpoint.pth")
        size, digest = self._sandbox.read(self._work, f"checkpoint-{number}.pth", target, self._work.output_bytes)
        ids: dict[str, Any] = {"task_id": self._current.task_id, "lease_token": self._current.lease_token, "number": number, "size": size}
        until = min(self._work.deadline, time.monotonic() + 120)
        self._client.upload(CheckpointUrlRequest(**ids), target, until=until, check=self._current.stop.check)
        self._client.checkpoint(CheckpointRequest(**ids, sha256=digest), until=until)


def _reach(found: Sequence[wire.Peer], peers: list[tuple[int, str, int]]) -> tuple[list[int], list[int]]:
    """Tries the others, and notes them in `peers`."""
    peers[:] = [(peer.rank, peer.address, peer.port) for peer in found]
    return try_peers(peers)


def _free_port(address: str, ports: tuple[int, int]) -> int:
    """The first of these ports that nobody listens on; 0 when all are taken. Port 0 finds any."""
    for port in range(ports[0], ports[1] + 1):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return probe.getsockname()[1]
    return 0


def _interface(address: str) -> str | None:
    """The network interface that carries an address; the loopback's for none."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address == (address or LOOPBACK) for each in addresses):
            return name
    return None


def _ignore(_number: int) -> None:
    """Rank 0 alone saves checkpoints."""
