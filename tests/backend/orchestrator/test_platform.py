"""The platform's orchestrator over real gRPC: agents on the ranks that they hold, and callers who hold none."""

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings
from gridx.orchestrator.dashboard import render
from gridx.orchestrator.platform import DatabaseView, PlatformCalls
from gridx.orchestrator.server import SERVICE, Tls
from gridx_protocol import orchestrator_pb2 as wire
from gridx_protocol.orchestrator_pb2_grpc import OrchestratorStub
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World, buyer, weights, world
from tests.backend.jobs.gang_play import Play, RankAgent
from tests.backend.orchestrator.conftest import Served

__all__ = ["buyer", "world"]
CALL_S = 60.0


class Rank:
    """A rank's agent on the wire."""

    def __init__(self, target: str, agent: RankAgent, credentials: grpc.ChannelCredentials | None = None) -> None:
        self.channel = grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target)
        self.stub: Any = OrchestratorStub(self.channel)
        self.agent = agent
        self.ids = {"task_id": agent.task["task_id"], "lease_token": agent.task["lease_token"]}

    def call(self, name: str, message: Any, token: str | None = None) -> Any:
        metadata = (("authorization", f"Bearer {self.agent.agent.token if token is None else token}"),)
        return getattr(self.stub, name)(message, timeout=CALL_S, metadata=metadata)

    def register(self, instance: str = "one", **ids: Any) -> Any:
        return self.call("Register", wire.RegisterRequest(instance=instance, **(self.ids | ids)))

    def can_start(self) -> Any:
        return self.call("CanStartTraining", wire.CanStartRequest(**self.ids))


def code_of(call: Callable[[], Any]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def play(world: World) -> Play:
    return Play(world)


@pytest.fixture
def served(serve: Callable[..., Served], world: World) -> Served:
    return serve(PlatformCalls(world.database, world.settings, world.clock), patience_s=2.0)


@pytest.fixture
def ranks(served: Served, buyer: Person, play: Play) -> list[Rank]:
    """The members of a gang of two that is forming."""
    agents = play.agents("a b")
    play.job(buyer, 2)
    assert play.form()
    return [Rank(served.target, agent) for agent in sorted(agents, key=lambda each: each.ask() and each.rank)]


class TestFlow:
    def test_from_registration_to_the_end(self, world: World, ranks: list[Rank], buyer: Person) -> None:
        first, second = ranks
        reply = first.register()
        assert (reply.rank, reply.world_size, reply.master_address, reply.master_port) == (0, 2, "127.0.0.1", 29500)
        assert first.can_start().waiting_for == "rank 0 (a) to be ready, rank 1 (b) to be ready"[len("rank 0 (a) to be ready, ") :]
        assert second.register().rank == 1
        assert second.can_start().can_start
        assert first.can_start().can_start
        beat = wire.HeartbeatRequest(rank=1, epoch=3, step=12, loss=0.125, samples_per_s=50, **second.ids)
        assert not second.call("SendHeartbeat", beat).stop
        [view] = DatabaseView(world.database, world.clock).views()
        assert (view.status, view.world_size) == ("TRAINING", 2)
        assert [(line.worker, line.epoch, line.step, line.loss) for line in view.lines] == [("a", None, None, None), ("b", 3, 12, 0.125)]
        assert render([view]) is not None
        gang = world.view(buyer, 1)["gang"]
        assert (gang["number"], gang["status"], gang["resumed_from"], gang["checkpoints"]) == (1, "TRAINING", None, 0)
        named = ("rank", "agent_id", "state", "epoch", "step", "loss", "samples_per_s")
        assert [tuple(rank[name] for name in named) for rank in gang["ranks"]] == [
            (0, "a", "TRAINING", None, None, None, None),
            (1, "b", "TRAINING", 3, 12, 0.125, 50.0),
        ]
        second.call("Leave", wire.LeaveRequest(train_s=1, loss=0.125, **second.ids))
        first.agent.agent.finish(weights())
        world.drain()
        view = world.view(buyer, 1)
        assert view["status"] == "COMPLETED"
        assert [rank["state"] for rank in view["gang"]["ranks"]] == ["ACCEPTED", "ACCEPTED"]

    def test_one_that_aborts_stops_the_others(self, ranks: list[Rank]) -> None:
        for each in ranks:
            each.register()
        for each in ranks:
            each.can_start()
        ranks[0].call("Abort", wire.AbortRequest(reason="cannot reach rank 1 any more", **ranks[0].ids))
        reply = ranks[1].call("SendHeartbeat", wire.HeartbeatRequest(rank=1, **ranks[1].ids))
        assert (reply.stop, reply.reason) == (True, "the gang was stopped: rank 0 (a): cannot reach rank 1 any more")

    def test_with_tls(self, serve: Callable[..., Served], world: World, play: Play, buyer: Person, tmp_path: Path) -> None:
        certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        command += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run(command, check=True, capture_output=True)
        served = serve(PlatformCalls(world.database, world.settings, world.clock), tls=Tls(certificate, key))
        agents = play.agents("a b")
        play.job(buyer, 2)
        assert play.form()
        for each in agents:
            assert each.ask()
        trusted = grpc.ssl_channel_credentials(certificate.read_bytes())
        assert Rank(f"localhost:{served.port}", agents[0], trusted).register().world_size == 2
        assert code_of(Rank(served.target, agents[0]).register) == grpc.StatusCode.UNAVAILABLE

    def test_half_of_tls_is_refused_at_the_start(self, settings: Settings, tmp_path: Path) -> None:
        settings.orchestrator_tls_cert = tmp_path / "cert.pem"
        with pytest.raises(ConfigurationError, match="both"):
            _ = settings.orchestrator_tls
        settings.orchestrator_tls_key = tmp_path / "key.pem"
        with pytest.raises(ConfigurationError, match="no file"):
            _ = settings.orchestrator_tls


class TestHostile:
    def test_wrong_tokens(self, ranks: list[Rank]) -> None:
        mine = wire.RegisterRequest(instance="one", **ranks[0].ids)
        for token in ("", "gxa_guessed", "x" * 5000):
            assert code_of(lambda token=token: ranks[0].call("Register", mine, token)) == grpc.StatusCode.UNAUTHENTICATED
        assert code_of(lambda: ranks[0].stub.Register(mine, timeout=CALL_S)) == grpc.StatusCode.UNAUTHENTICATED
        assert code_of(lambda: ranks[0].call("Register", mine, ranks[1].agent.agent.token)) == grpc.StatusCode.FAILED_PRECONDITION
        assert code_of(lambda: ranks[0].register(lease_token="guessed")) == grpc.StatusCode.FAILED_PRECONDITION
        assert code_of(lambda: ranks[0].register(task_id=2**64 - 1)) == grpc.StatusCode.INVALID_ARGUMENT

    def test_a_replayed_registration(self, ranks: list[Rank]) -> None:
        assert ranks[0].register().rank == 0
        assert ranks[0].register().rank == 0
        for each in ranks:
            each.register()
            each.can_start()
        assert code_of(lambda: ranks[1].register("another process")) == grpc.StatusCode.FAILED_PRECONDITION
        assert code_of(lambda: ranks[1].register()) == grpc.StatusCode.FAILED_PRECONDITION

    def test_ranks_out_of_range_and_no_instance(self, ranks: list[Rank]) -> None:
        assert code_of(lambda: ranks[0].register("a\x00b")) == grpc.StatusCode.INVALID_ARGUMENT
        assert code_of(lambda: ranks[0].register("")) == grpc.StatusCode.INVALID_ARGUMENT
        ranks[0].register()
        far = wire.HeartbeatRequest(rank=2**32 - 1, **ranks[0].ids)
        assert code_of(lambda: ranks[0].call("SendHeartbeat", far)) == grpc.StatusCode.INVALID_ARGUMENT
        reached = wire.CanStartRequest(reached=[2], **ranks[0].ids)
        assert code_of(lambda: ranks[0].call("CanStartTraining", reached)) == grpc.StatusCode.INVALID_ARGUMENT

    def test_a_thousand_idle_streams_of_strangers(self, served: Served, ranks: list[Rank]) -> None:
        end = threading.Event()

        def silence() -> Any:
            end.wait(CALL_S)
            yield from ()

        channels = [grpc.insecure_channel(served.target, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(5)]
        with ThreadPoolExecutor(4) as workers:
            path = f"/{SERVICE}/Register"
            opened = list(
                workers.map(
                    lambda number: (
                        channels[number % 5]
                        .stream_unary(path, request_serializer=bytes, response_deserializer=bytes)
                        .future(silence(), timeout=CALL_S)
                    ),
                    range(1000),
                )
            )
        assert ranks[0].register().rank == 0
        codes = {call.code() for call in opened}
        end.set()
        assert codes <= {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED}
        for channel in channels:
            channel.close()
