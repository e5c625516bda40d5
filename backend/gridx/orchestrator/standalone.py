"""`gridx orchestrator --standalone`: a group of workers on this machine, without accounts and without a database."""

import asyncio
import ipaddress
import time
from collections.abc import Callable

import structlog

from gridx.core.errors import ConfigurationError
from gridx.orchestrator.dashboard import show
from gridx.orchestrator.room import Room
from gridx.orchestrator.server import make_server
from gridx_protocol import orchestrator_pb2 as wire

HEARTBEAT_S = 1.0
LAST_WORDS_S = 3.0
"""After its end the orchestrator still answers for so long: the others learn from their next heartbeat that they have to stop."""
_LOOK_S = 0.2
_log = structlog.get_logger()


class RoomCalls:
    """The calls on one room. Whoever reaches this machine's loopback may take part; `session` keeps the ranks apart."""

    def __init__(self, room: Room, clock: Callable[[], float] = time.monotonic) -> None:
        self._room, self._clock = room, clock

    async def admit(self, token: str | None) -> None:
        """Everybody."""

    async def register(self, caller: None, request: wire.RegisterRequest) -> wire.RegisterReply:
        member = self._room.register(request.worker_id, request.instance, request.address, request.port, self._clock())
        address, port = self._room.master
        _log.info("registered", rank=member.rank, worker=member.worker_id)
        return wire.RegisterReply(
            rank=member.rank,
            world_size=self._room.world_size,
            local_rank=member.rank,
            master_address=address,
            master_port=port,
            session=member.session,
            heartbeat_s=HEARTBEAT_S,
        )

    async def heartbeat(self, caller: None, request: wire.HeartbeatRequest) -> wire.HeartbeatReply:
        reason = self._room.heartbeat(
            request.rank,
            request.session,
            self._clock(),
            epoch=request.epoch,
            step=request.step,
            loss=request.loss if request.HasField("loss") else None,
            samples_per_s=request.samples_per_s if request.HasField("samples_per_s") else None,
        )
        return wire.HeartbeatReply(stop=reason is not None, reason=reason or "")

    async def can_start(self, caller: None, request: wire.CanStartRequest) -> wire.CanStartReply:
        ready = self._room.can_start(request.rank, request.session, self._clock())
        address, port = self._room.master
        return wire.CanStartReply(
            can_start=ready,
            waiting_for="" if ready else self._room.waiting_for(),
            registered=self._room.registered,
            world_size=self._room.world_size,
            master_address=address,
            master_port=port,
            stop=self._room.status == "ABORTED",
            reason=self._room.reason,
        )

    async def leave(self, caller: None, request: wire.LeaveRequest) -> wire.LeaveReply:
        self._room.leave(request.rank, request.session, self._clock())
        return wire.LeaveReply()

    async def abort(self, caller: None, request: wire.AbortRequest) -> wire.AbortReply:
        self._room.abort(request.rank, request.session, request.reason, self._clock())
        return wire.AbortReply()


async def run(room: Room, host: str, port: int, *, dashboard: bool, on_ready: Callable[[int], None] | None = None) -> int:
    """Serve until training has ended. Returns 0 when all ranks ended well, 1 otherwise. Raises PortTaken."""
    if not _is_loopback(host):
        raise ConfigurationError(f"--standalone knows no accounts, so it listens on this machine alone and not on {host}")
    server, bound = make_server(RoomCalls(room), host, port)
    await server.start()
    _log.info("listening", port=bound, world_size=room.world_size)
    if on_ready is not None:
        on_ready(bound)
    try:
        with show(room, enabled=dashboard):
            while not room.is_over:
                await asyncio.sleep(_LOOK_S)
                room.look(time.monotonic())
            _log.info("ended", status=room.status, reason=room.reason or None)
            await asyncio.sleep(LAST_WORDS_S if room.status == "ABORTED" else 0)
    finally:
        await server.stop(1.0)
    return 0 if room.status == "DONE" else 1


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
