"""The standalone orchestrator over real gRPC: the whole flow, and callers who mean no good."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from rich.console import Console

from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings
from gridx.orchestrator import command, standalone
from gridx.orchestrator.dashboard import render, show
from gridx.orchestrator.room import Room
from gridx.orchestrator.server import SERVICE, PortTaken
from gridx.orchestrator.standalone import RoomCalls
from gridx_protocol import orchestrator_pb2 as wire
from gridx_protocol.orchestrator_pb2_grpc import OrchestratorStub
from tests.backend.orchestrator.conftest import Served

CALL_S = 30.0


@pytest.fixture
def room() -> Room:
    return Room(4, silent_after_s=60)


@pytest.fixture
def served(serve: Callable[..., Served], room: Room) -> Served:
    return serve(RoomCalls(room))


def code_of(call: Callable[[], Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()  # pyright: ignore[reportAttributeAccessIssue]


def text_of(room: Room) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the process
    console.print(render(room.views()))
    return console.export_text()


class TestFlow:
    def test_four_workers_that_know_only_the_proto(self, served: Served, room: Room) -> None:
        channels = [grpc.insecure_channel(served.target) for _ in range(4)]
        stubs: list[Any] = [OrchestratorStub(channel) for channel in channels]
        replies = [stub.Register(wire.RegisterRequest(worker_id=f"w{number}"), timeout=CALL_S) for number, stub in enumerate(stubs[:3])]
        early = wire.CanStartRequest(session=replies[0].session, rank=0)
        answer = stubs[0].CanStartTraining(early, timeout=CALL_S)
        assert (answer.can_start, answer.registered, answer.waiting_for) == (False, 3, "1 of 4 ranks have not come yet")
        replies.append(stubs[3].Register(wire.RegisterRequest(), timeout=CALL_S))
        assert [reply.rank for reply in replies] == [0, 1, 2, 3]
        assert {(reply.world_size, reply.master_address, reply.master_port) for reply in replies} == {(4, "127.0.0.1", 29500)}
        for stub, reply in zip(stubs, replies, strict=True):
            assert stub.CanStartTraining(wire.CanStartRequest(session=reply.session, rank=reply.rank), timeout=CALL_S).can_start
        for stub, reply in zip(stubs, replies, strict=True):
            beat = wire.HeartbeatRequest(session=reply.session, rank=reply.rank, epoch=2, step=70 + reply.rank, loss=0.25)
            assert not stub.SendHeartbeat(beat, timeout=CALL_S).stop
        shown = text_of(room)
        assert all(f"{70 + rank}" in shown for rank in range(4))
        assert "0.2500" in shown
        assert "TRAINING" in shown
        for stub, reply in zip(stubs, replies, strict=True):
            stub.Leave(wire.LeaveRequest(session=reply.session, rank=reply.rank), timeout=CALL_S)
        assert room.status == "DONE"
        for channel in channels:
            channel.close()

    def test_it_ends_with_the_training_and_the_port_is_50051_by_default(self) -> None:
        room = Room(1)
        ports: list[int] = []

        def work(port: int) -> None:
            ports.append(port)
            threading.Thread(target=_train_once, args=(port,)).start()

        assert asyncio.run(standalone.run(room, "127.0.0.1", 0, dashboard=False, on_ready=work)) == 0
        assert room.status == "DONE"
        assert (Settings(_env_file=None).orchestrator_port, command.DEFAULT_PORT) == (50051, 50051)  # pyright: ignore[reportCallIssue]

    def test_a_taken_port_is_said_and_strangers_networks_are_refused(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            with pytest.raises(PortTaken, match="taken"):
                asyncio.run(standalone.run(Room(1), "127.0.0.1", other.getsockname()[1], dashboard=False))
        with pytest.raises(ConfigurationError, match="this machine alone"):
            asyncio.run(standalone.run(Room(1), "0.0.0.0", 0, dashboard=False))

    def test_the_dashboard_runs_while_it_is_looked_at(self, room: Room) -> None:
        room.register("ada[bold]", "x", "", 0, 0.0)
        console = Console(width=140, record=True, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
        with show(room, enabled=True, console=console):
            pass
        assert "ada[bold]" in console.export_text()


def _train_once(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = OrchestratorStub(channel)
        reply = stub.Register(wire.RegisterRequest(worker_id="w"), timeout=CALL_S)
        assert stub.CanStartTraining(wire.CanStartRequest(session=reply.session), timeout=CALL_S).can_start
        stub.Leave(wire.LeaveRequest(session=reply.session), timeout=CALL_S)


class TestHostile:
    def test_wrong_session_replay_and_rank_out_of_range(self, served: Served, room: Room) -> None:
        with grpc.insecure_channel(served.target) as channel:
            stub: Any = OrchestratorStub(channel)
            mine = wire.RegisterRequest(worker_id="w", instance="one")
            reply = stub.Register(mine, timeout=CALL_S)
            assert stub.Register(mine, timeout=CALL_S).session == reply.session
            replay = wire.RegisterRequest(worker_id="w", instance="two")
            assert code_of(lambda: stub.Register(replay, timeout=CALL_S)) == grpc.StatusCode.FAILED_PRECONDITION
            guess = wire.HeartbeatRequest(session="guessed", rank=0)
            assert code_of(lambda: stub.SendHeartbeat(guess, timeout=CALL_S)) == grpc.StatusCode.UNAUTHENTICATED
            far = wire.HeartbeatRequest(session=reply.session, rank=4_000_000_000)
            assert code_of(lambda: stub.SendHeartbeat(far, timeout=CALL_S)) == grpc.StatusCode.INVALID_ARGUMENT
            other = wire.LeaveRequest(session=reply.session, rank=1)
            assert code_of(lambda: stub.Leave(other, timeout=CALL_S)) == grpc.StatusCode.UNAUTHENTICATED
        assert room.registered == 1

    @pytest.mark.parametrize("data", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x08", bytes(range(256)), b"\x0a\x02\xc3\x28"])
    def test_garbage_is_no_message(self, served: Served, data: bytes) -> None:
        with grpc.insecure_channel(served.target) as channel:
            raw = channel.unary_unary(f"/{SERVICE}/Register", request_serializer=bytes, response_deserializer=bytes)
            assert code_of(lambda: raw(data, timeout=CALL_S)) == grpc.StatusCode.INVALID_ARGUMENT
            too_much = b"\x0a" + b"\xff\xff\x07" + b"a" * 131071
            assert code_of(lambda: raw(too_much, timeout=CALL_S)) == grpc.StatusCode.RESOURCE_EXHAUSTED
            unknown = channel.unary_unary(f"/{SERVICE}/Train", request_serializer=bytes, response_deserializer=bytes)
            assert code_of(lambda: unknown(b"", timeout=CALL_S)) == grpc.StatusCode.UNIMPLEMENTED

    def test_a_peer_that_does_not_speak_the_protocol(self, served: Served, room: Room) -> None:
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64):
            with socket.create_connection(("127.0.0.1", served.port), timeout=CALL_S) as peer:
                peer.sendall(said)
        with grpc.insecure_channel(served.target) as channel:
            stub: Any = OrchestratorStub(channel)
            assert stub.Register(wire.RegisterRequest(worker_id="w"), timeout=CALL_S).rank == 0

    def test_a_thousand_idle_streams_end_and_others_are_served_meanwhile(self, serve: Callable[..., Served], room: Room) -> None:
        served = serve(RoomCalls(room), patience_s=2.0)
        channels = [grpc.insecure_channel(served.target, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(5)]
        end = threading.Event()

        def silence() -> Any:
            end.wait(CALL_S)
            yield from ()

        with ThreadPoolExecutor(4) as workers:
            opened = list(
                workers.map(
                    lambda number: (
                        channels[number % 5]
                        .stream_unary(f"/{SERVICE}/Register", request_serializer=bytes, response_deserializer=bytes)
                        .future(silence(), timeout=CALL_S)
                    ),
                    range(1000),
                )
            )
        with grpc.insecure_channel(served.target) as channel:
            stub: Any = OrchestratorStub(channel)
            begun = time.monotonic()
            assert stub.Register(wire.RegisterRequest(worker_id="w"), timeout=CALL_S).rank == 0
            assert time.monotonic() - begun < CALL_S
        codes = {call.code() for call in opened}
        end.set()
        assert codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert room.registered == 1
        for channel in channels:
            channel.close()
