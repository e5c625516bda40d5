"""The orchestrator as a rank sees it: register, wait for the others, send heartbeats, leave or abort."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from gridx_protocol import orchestrator_pb2 as wire
from gridx_protocol.orchestrator_pb2_grpc import OrchestratorStub

log = logging.getLogger(__name__)

CALL_S = 10.0
PAUSE_S = 0.2
LONGEST_PAUSE_S = 3.0
MAX_MESSAGE_BYTES = 1024 * 1024
_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
Reply = TypeVar("Reply")


class Refused(Exception):
    """The orchestrator will not take this call; the message is its own."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words or code.name)
        self.code = code


class Stop(Exception):
    """Everybody has to stop; the message says why."""


class OutOfPatience(Exception):
    """The orchestrator could not be reached, or the others did not come, until the time was up."""


@dataclass(frozen=True)
class Access:
    """How a worker shows who it is. Empty where the orchestrator knows no accounts."""

    token: Callable[[], str] = str
    task_id: int = 0
    lease_token: str = ""


@dataclass(frozen=True)
class Place:
    """A rank and where rank 0 listens."""

    rank: int
    world_size: int
    local_rank: int
    master_address: str
    master_port: int

    def environment(self) -> dict[str, str]:
        """What torch.distributed's `init_process_group()` reads."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_RANK": str(self.local_rank),
            "MASTER_ADDR": self.master_address,
            "MASTER_PORT": str(self.master_port),
        }


@dataclass
class Progress:
    """What a rank tells of itself. Single assignments, so it needs no lock."""

    epoch: int = 0
    step: int = 0
    loss: float | None = None
    samples_per_s: float | None = None


class Rendezvous:
    """One rank's connection. `target` is host:port; `certificate` PEM bytes to trust, b"" for the system's own, None for no TLS.

    A call is repeated until it is answered, refused, or the time `until` (time.monotonic()) is up: the orchestrator may be restarting.
    """

    def __init__(self, target: str, *, worker_id: str, access: Access | None = None, certificate: bytes | None = None) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_retries", 0),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.enable_http_proxy", 0),
        ]
        if certificate is None:
            self._channel = grpc.insecure_channel(target, options)
        else:
            self._channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(certificate or None), options)
        self._stub: Any = OrchestratorStub(self._channel)
        self._worker_id = worker_id
        self._instance = secrets.token_hex(16)
        self._access = access or Access()
        self._session = ""
        self._rank = 0
        self.heartbeat_s = 1.0

    def register(self, *, address: str = "", port: int = 0, handshake_port: int = 0, until: float, stop: threading.Event) -> Place:
        """Raises Refused, OutOfPatience."""
        request = wire.RegisterRequest(
            worker_id=self._worker_id, instance=self._instance, address=address, port=port, handshake_port=handshake_port,
            task_id=self._access.task_id, lease_token=self._access.lease_token,
        )  # fmt: skip
        reply: wire.RegisterReply = self._call(self._stub.Register, request, until, stop)
        self._session, self._rank = reply.session, reply.rank
        self.heartbeat_s = max(reply.heartbeat_s, 0.05)
        return Place(reply.rank, reply.world_size, reply.local_rank, reply.master_address, reply.master_port)

    def wait_for_all(
        self,
        place: Place,
        *,
        until: float,
        stop: threading.Event,
        reach: Callable[[Sequence[wire.Peer]], tuple[list[int], list[int]]] | None = None,
    ) -> Place:
        """Asks until all ranks are there; the place with rank 0's final address. `reach` tries peers: (ranks reached, ranks not reached).

        Raises Refused, Stop, OutOfPatience.
        """
        reached: list[int] = []
        unreachable: list[int] = []
        said = ""
        while True:
            request = wire.CanStartRequest(
                session=self._session, rank=self._rank, task_id=self._access.task_id, lease_token=self._access.lease_token,
                reached=reached, unreachable=unreachable,
            )  # fmt: skip
            reply: wire.CanStartReply = self._call(self._stub.CanStartTraining, request, until, stop)
            if reply.stop:
                raise Stop(reply.reason)
            if reply.can_start:
                return Place(place.rank, place.world_size, place.local_rank, reply.master_address, reply.master_port)
            if reply.waiting_for != said:
                said = reply.waiting_for
                log.info("waiting for the other ranks", extra={"cause": said})
            if reply.peers and reach is not None:
                reached, unreachable = reach(reply.peers)
            if time.monotonic() > until or stop.wait(PAUSE_S):
                raise OutOfPatience(f"not all ranks came in time: {said}")

    def heartbeat(self, progress: Progress) -> None:
        """One sign of life, not repeated when it gets lost. Raises Stop when everybody has to, Refused."""
        request = wire.HeartbeatRequest(
            session=self._session, rank=self._rank, epoch=progress.epoch, step=progress.step, loss=progress.loss,
            samples_per_s=progress.samples_per_s, task_id=self._access.task_id, lease_token=self._access.lease_token,
        )  # fmt: skip
        reply: wire.HeartbeatReply = self._once(self._stub.SendHeartbeat, request, CALL_S)
        if reply.stop:
            raise Stop(reply.reason)

    def leave(self, *, train_s: float, progress: Progress, accuracy: float | None = None, until: float, stop: threading.Event) -> None:
        """The script has ended well. Raises Refused, OutOfPatience."""
        request = wire.LeaveRequest(
            session=self._session, rank=self._rank, task_id=self._access.task_id, lease_token=self._access.lease_token,
            train_s=train_s, loss=progress.loss, accuracy=accuracy,
        )  # fmt: skip
        self._call(self._stub.Leave, request, until, stop)

    def abort(self, reason: str, *, until: float, stop: threading.Event) -> None:
        """Raises Refused, OutOfPatience."""
        request = wire.AbortRequest(
            session=self._session, rank=self._rank, task_id=self._access.task_id, lease_token=self._access.lease_token, reason=reason
        )
        self._call(self._stub.Abort, request, until, stop)

    def close(self) -> None:
        self._channel.close()

    def _call(self, method: Any, request: Any, until: float, stop: threading.Event) -> Any:
        pause = PAUSE_S
        while True:
            try:
                return self._once(method, request, CALL_S)
            except Lost as error:
                if time.monotonic() + pause > until or stop.wait(pause):
                    raise OutOfPatience(f"the orchestrator cannot be reached: {error}") from error
                pause = min(pause * 2, LONGEST_PAUSE_S)

    def _once(self, method: Any, request: Any, seconds: float) -> Any:
        """Raises Lost when a repetition may help, Refused when not."""
        token = self._access.token()
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        try:
            return method(request, timeout=seconds, metadata=metadata)
        except grpc.RpcError as error:
            code, words = error.code(), error.details() or ""
            if code in _PASSING:
                raise Lost(words or code.name) from error
            raise Refused(code, words) from error


class Lost(Exception):
    """The call or its answer got lost."""


class Beats:
    """Sends heartbeats from a thread of its own while a block runs. `on_stop` is called once, with the reason, when all have to stop."""

    def __init__(self, rendezvous: Rendezvous, progress: Progress, on_stop: Callable[[str], None]) -> None:
        self._rendezvous, self._progress, self._on_stop = rendezvous, progress, on_stop
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="rank-heartbeat", daemon=True)

    def __enter__(self) -> "Beats":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(CALL_S + 5)

    def _loop(self) -> None:
        while True:
            try:
                self._rendezvous.heartbeat(self._progress)
            except (Stop, Refused) as error:
                if not self._end.is_set():
                    self._on_stop(str(error))
                return
            except Lost as error:
                log.info("a rank's heartbeat got lost", extra={"cause": str(error)})
            except ValueError:  # the channel was closed meanwhile
                return
            if self._end.wait(self._rendezvous.heartbeat_s):
                return
