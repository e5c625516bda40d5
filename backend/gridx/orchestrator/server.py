"""The gRPC server: what it bounds, and how errors become status codes. Who answers the calls is passed in.

A message is awaited for some seconds only, after the caller was let in, and its bytes are parsed here: whoever opens streams and says
nothing, or sends what is no message, costs a little memory for a short time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from grpc import aio

from gridx.core.errors import GridxError, Invalid, Unavailable
from gridx_protocol import orchestrator_pb2 as wire

SERVICE: Final = wire.DESCRIPTOR.services_by_name["Orchestrator"].full_name
MAX_MESSAGE_BYTES: Final = 64 * 1024
MESSAGE_PATIENCE_S: Final = 5.0
MAX_CALLS: Final = 4096
"""At the same time; each that waits for its message costs some kilobytes."""
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # else a second server on the same port would take half of the calls, and say nothing
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 1024),
    ("grpc.server_handshake_timeout_ms", 5_000),
    ("grpc.max_connection_idle_ms", 120_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_log = structlog.get_logger()


class PortTaken(GridxError):
    """Something else listens there."""

    status = 503
    code = "port_taken"


Caller = TypeVar("Caller")


class Calls(Protocol[Caller]):
    """Who answers. `admit` sees the bearer token before any message is read, and raises for who is not let in."""

    async def admit(self, token: str | None) -> Caller: ...

    async def register(self, caller: Caller, request: wire.RegisterRequest) -> wire.RegisterReply: ...

    async def heartbeat(self, caller: Caller, request: wire.HeartbeatRequest) -> wire.HeartbeatReply: ...

    async def can_start(self, caller: Caller, request: wire.CanStartRequest) -> wire.CanStartReply: ...

    async def leave(self, caller: Caller, request: wire.LeaveRequest) -> wire.LeaveReply: ...

    async def abort(self, caller: Caller, request: wire.AbortRequest) -> wire.AbortReply: ...


@dataclass(frozen=True)
class Tls:
    """PEM files: the certificate chain and its key."""

    certificate: Path
    key: Path


def make_server(
    calls: Calls[Any], host: str, port: int, tls: Tls | None = None, *, patience_s: float = MESSAGE_PATIENCE_S
) -> tuple[aio.Server, int]:
    """A server that listens but has not started, and its port (a free one for port 0). Raises PortTaken."""
    server = aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
    answers: dict[str, tuple[type[Message], Callable[[Any, Any], Awaitable[Message]]]] = {
        "Register": (wire.RegisterRequest, calls.register),
        "SendHeartbeat": (wire.HeartbeatRequest, calls.heartbeat),
        "CanStartTraining": (wire.CanStartRequest, calls.can_start),
        "Leave": (wire.LeaveRequest, calls.leave),
        "Abort": (wire.AbortRequest, calls.abort),
    }
    handlers = {name: _handler(calls, kind, answer, patience_s) for name, (kind, answer) in answers.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_secure_port(address, _credentials(tls)) if tls else server.add_insecure_port(address)
    except RuntimeError:
        bound = 0
    if not bound:
        raise PortTaken(f"port {port} on {host} is taken, or the address is none of this machine's")
    return server, bound


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])


def _handler(
    calls: Calls[Any], kind: type[Message], answer: Callable[[Any, Any], Awaitable[Message]], patience_s: float
) -> "grpc.RpcMethodHandler[Any, Any]":
    async def handle(_requests: Any, context: Any) -> bytes:
        try:
            caller = await calls.admit(_bearer(context))
            request = await _read(context, kind, patience_s)
            return (await answer(caller, request)).SerializeToString()
        except GridxError as error:
            await context.abort(_CODES.get(error.status, grpc.StatusCode.UNKNOWN), error.detail)
        except (aio.AbortError, asyncio.CancelledError):
            raise
        except Exception:
            _log.error("call failed", call=kind.__name__, exc_info=True)
            await context.abort(grpc.StatusCode.INTERNAL, "the orchestrator could not do this; its log says why")
        raise AssertionError("abort always raises")

    # On the wire a call with one message is the same as a stream of one. Declared as a stream, the wait for it is ours to end.
    return grpc.stream_unary_rpc_method_handler(handle)


async def _read(context: Any, kind: type[Message], patience_s: float) -> Message:
    try:
        data = await asyncio.wait_for(context.read(), patience_s)
    except TimeoutError:
        raise Unavailable(f"no message came within {patience_s:g} s") from None
    if not isinstance(data, bytes):  # the stream ended
        raise Invalid("the call carries no message")
    try:
        message = kind.FromString(data)
    except DecodeError:
        raise Invalid(f"this is no {kind.DESCRIPTOR.name}") from None
    for field, value in message.ListFields():
        if isinstance(value, str) and "\x00" in value:
            raise Invalid(f"{field.name}: NUL is not allowed")
    return message


def _bearer(context: Any) -> str | None:
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            return token.strip() if scheme.lower() == "bearer" else None
    return None
