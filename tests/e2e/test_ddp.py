"""Synchronous training through real processes: server, orchestrator, agents, sandboxes; machines that die in the middle."""

import contextlib
import io
import os
import re
import runpy
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.platform import EXAMPLES, AgentProcess, Platform, User, breast_cancer, free_port, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

EXAMPLE = EXAMPLES / "ddp_breast_cancer" / "train.py"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A server on SQLite, with an orchestrator on a port of its own."""
    made = Platform(tmp_path / "home", settings={"GRIDX_ORCHESTRATOR_PORT": str(free_port())})
    try:
        made.start()
        yield made
        checked = made.gridx("check-ledger")
        assert checked.returncode == 0, checked.stderr
    finally:
        made.close()


def start_agents(platform: Platform, names: str, sandbox: str = "process") -> list[AgentProcess]:
    return [AgentProcess.start_new(platform, name, sandbox, "--ddp-slots", "1") for name in names.split()]


def deal(csv_bytes: bytes, folder: Path, ranks: int) -> list[str]:
    """The chunks of the partitioner `contiguous`, as files."""
    header, *rows = csv_bytes.decode().splitlines(keepends=True)
    paths: list[str] = []
    done = 0
    for rank in range(ranks):
        count = len(rows) // ranks + (rank < len(rows) % ranks)
        path = folder / f"chunk-{rank}.csv"
        path.write_text(header + "".join(rows[done : done + count]))
        done += count
        paths.append(str(path))
    return paths


def run_example(platform: Platform, folder: Path, sandbox: str) -> None:
    """Four ranks end with the same parameters, which are those of one process on the same global batches."""
    agents = start_agents(platform, "ada bob cyd dan", sandbox)
    buyer = User.register(platform, "buyer@example.com", "buyer")
    data = breast_cancer()
    job_id = buyer.submit(EXAMPLE.read_text(), data, mode="ddp", chunks=4, partitioner="contiguous")
    assert buyer.credits() == 96
    job = buyer.ended(job_id, 340)
    assert (job["status"], job["completed_subtasks"], job["total_subtasks"]) == ("COMPLETED", 4, 4), job
    assert [subtask["kind"] for subtask in job["subtasks"]] == ["rank"] * 4
    assert [agent.seller.credits() for agent in agents] == [101] * 4
    final = torch.load(io.BytesIO(buyer.model(job_id)), weights_only=True)
    expected = runpy.run_path(str(EXAMPLE))["train_alone"](deal(data, folder, 4)).state_dict()
    assert max(float((final[name] - expected[name]).abs().max()) for name in expected) <= 1e-5
    logs = {log["chunk"]: log["text"] for log in buyer.call("GET", f"/jobs/{job_id}/logs").json()["items"]}
    assert all(f"rank {rank}: parameters differ from rank 0's by 0.0e+00" in logs[rank] for rank in range(4)), logs


class TestExample:
    def test_in_the_process_sandbox(self, platform: Platform, tmp_path: Path) -> None:
        run_example(platform, tmp_path, "process")

    @pytest.mark.long
    @pytest.mark.docker
    @pytest.mark.usefixtures("sandbox_image")
    def test_in_docker(self, platform: Platform, tmp_path: Path) -> None:
        run_example(platform, tmp_path, "docker")


# Adds one to every weight in each step, all ranks together, until the file GO lies in the folder named on its command line.
COUNTING = """
import pathlib, sys, time
import torch
import torch.distributed as dist
import gridx_task
dist.init_process_group("gloo")
model = torch.nn.Linear(2, 1)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.zero_()
step = 0
if saved := gridx_task.load_checkpoint():
    model.load_state_dict(saved["model"])
    step = saved["step"]
print(f"starts at step {step}", flush=True)
go = pathlib.Path(sys.argv[1]) / "GO"
while True:
    step += 1
    one, last = torch.ones(()), torch.tensor(float(go.exists()))
    dist.all_reduce(one)
    dist.all_reduce(last, op=dist.ReduceOp.MAX)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(one / dist.get_world_size())
    gridx_task.report(epoch=step, loss=1.0 / step, step=step)
    if step % 5 == 0:
        gridx_task.save_checkpoint({"model": model.state_dict(), "step": step})
    if last:
        break
    time.sleep(0.05)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pth")
dist.barrier()
"""
ROWS = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n % 2) for n in range(40))


class Counting:
    """A job of two ranks that trains until it is told to stop."""

    def __init__(self, platform: Platform, folder: Path, agents: list[AgentProcess]) -> None:
        self.platform, self.folder = platform, folder
        self.agents = {agent.name: agent for agent in agents}
        self.buyer = User.register(platform, "buyer@example.com", "buyer")
        self.job_id = self.buyer.submit(COUNTING, ROWS, mode="ddp", chunks=2, arguments=f'["{folder}"]')

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(f"file:{self.platform.home / 'gridx.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(statement).fetchall()

    def gang(self) -> int:
        """The number of the gang that trains now, 0 for none."""
        rows = self.query("SELECT number FROM gangs WHERE status = 'TRAINING'")
        return rows[0][0] if rows else 0

    def step(self) -> int:
        subtasks = self.buyer.job(self.job_id).get("subtasks", [])
        return min((subtask["epoch"] or 0 for subtask in subtasks if subtask["status"] == "RUNNING"), default=0)

    def checkpoint(self, least: int = 0) -> int:
        """The number of the last sealed checkpoint of the gang at work, if it is beyond `least`."""
        rows = self.query("SELECT max(number) FROM checkpoints WHERE status = 'SEALED' AND gang_id = (SELECT max(id) FROM gangs)")
        return rows[0][0] if rows[0][0] and rows[0][0] > least else 0

    def trains(self, gang: int) -> None:
        until(lambda: self.gang() == gang and self.step() > 0, 150, f"gang {gang} trains: {self.buyer.job(self.job_id).get('waiting_for')}")
        # Log lines come up to a second after the steps; an agent killed before would take its rank's first line with it.
        until(lambda: len(self.starts()) == gang, 30, f"rank 0 of gang {gang} says where it starts")

    def kill_agent_of(self, rank: int) -> AgentProcess:
        subtask = next(each for each in self.buyer.job(self.job_id)["subtasks"] if each["chunk"] == rank)
        agent = self.agents[subtask["agent_id"]]
        agent.kill()
        return agent

    def events(self, part: str) -> list[str]:
        return [row[0] for row in self.query("SELECT text FROM job_events ORDER BY id") if part in row[0]]

    def starts(self) -> list[int]:
        """Where the gangs' ranks 0 began."""
        logs = self.buyer.call("GET", f"/jobs/{self.job_id}/logs").json()["items"]
        return [int(step) for log in logs if log["chunk"] == 0 for step in re.findall(r"starts at step (\d+)", log["text"])]


@pytest.mark.long
class TestKill:
    def test_an_orchestrator_then_a_rank_then_rank_0(self, platform: Platform, tmp_path: Path) -> None:
        playing = Counting(platform, tmp_path, start_agents(platform, "ada bob cyd"))
        playing.trains(1)
        until(playing.checkpoint, 60, "a checkpoint is kept")

        first, before = platform.child("gridx.orchestrator.__main__"), playing.step()
        first.kill()
        until(lambda: playing.step() > before + 5, 60, "training goes on without the orchestrator")
        until(lambda: platform.child("gridx.orchestrator.__main__").pid != first.pid, 60, "it is started anew")
        assert playing.gang() == 1

        lost = playing.kill_agent_of(1)
        playing.trains(2)
        until(playing.checkpoint, 60, "the second gang keeps checkpoints as well")
        lost.start()

        playing.kill_agent_of(0)
        playing.trains(3)
        (tmp_path / "GO").touch()
        job = playing.buyer.ended(playing.job_id, 120)
        assert (job["status"], job["completed_subtasks"], job["paid"], job["held"]) == ("COMPLETED", 2, 2, 0), job["reason"]
        assert playing.buyer.credits() == 98
        assert sum(agent.seller.credits() - 100 for agent in playing.agents.values()) == 2
        starts = playing.starts()
        assert starts[0] == 0
        assert 5 <= starts[1] < starts[2], "each gang begins at the last checkpoint"
        model = torch.load(io.BytesIO(playing.buyer.model(playing.job_id)), weights_only=True)
        last = max(subtask["epoch"] for subtask in job["subtasks"])
        assert model["weight"].tolist() == [[last, last]], "as if nothing had happened"


class Network:
    """Two network namespaces with a cable between them, and one to this machine for each: two hosts, as far as their processes can tell."""

    def __init__(self) -> None:
        number, mark = os.getpid() % 200 + 20, f"gx{os.getpid() % 1_000_000}"
        self.hosts = {f"{mark}a": f"10.214.{number}.2", f"{mark}b": f"10.214.{number}.3"}
        self.servers = {f"{mark}a": f"10.213.{number}.1", f"{mark}b": f"10.213.{number}.5"}
        for name, last in zip(self.hosts, (2, 6), strict=True):
            self._ip(f"netns add {name}")
            self._ip(f"link add {name}h type veth peer name eth0 netns {name}")
            self._ip(f"addr add {self.servers[name]}/30 dev {name}h")
            self._ip(f"link set {name}h up")
            self._ip(f"-n {name} addr add 10.213.{number}.{last}/30 dev eth0")
            for device in ("eth0", "lo"):
                self._ip(f"-n {name} link set {device} up")
        first, second = self.hosts
        self._ip(f"-n {first} link add eth1 type veth peer name eth1 netns {second}")
        for name, address in self.hosts.items():
            self._ip(f"-n {name} addr add {address}/24 dev eth1")
            self._ip(f"-n {name} link set eth1 up")

    def cut(self) -> None:
        """The two no longer reach one another; both reach the server."""
        first, second = self.hosts
        self._ip(f"-n {first} route add blackhole {self.hosts[second]}/32")

    def mend(self) -> None:
        first, second = self.hosts
        self._ip(f"-n {first} route del blackhole {self.hosts[second]}/32")

    def close(self) -> None:
        for name in self.hosts:
            self._ip(f"netns del {name}")

    def _ip(self, command: str) -> None:
        subprocess.run(["ip", *command.split()], check=True, capture_output=True, timeout=30)


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    made = Network()
    yield made
    made.close()


@pytest.mark.long
class TestCut:
    def test_a_network_cut_between_two_ranks(self, network: Network, tmp_path: Path) -> None:
        settings = {"GRIDX_ORCHESTRATOR_PORT": str(free_port())}
        platform = Platform(tmp_path / "home", settings=settings, host="0.0.0.0")
        try:
            platform.start()
            agents = [
                AgentProcess.start_new(
                    platform,
                    name,
                    "process",
                    *("--server", f"http://{network.servers[host]}:{platform.port}", "--ddp-slots", "1"),
                    *("--ddp-network", "lab", "--ddp-address", network.hosts[host]),
                    prefix=("ip", "netns", "exec", host),
                )
                for name, host in zip(("ada", "bob"), network.hosts, strict=True)
            ]
            playing = Counting(platform, tmp_path, agents)
            playing.trains(1)
            until(playing.checkpoint, 60, "a checkpoint is kept")
            network.cut()
            until(lambda: playing.events("gang 1 was stopped"), 60, "the cut is found")
            [stopped] = playing.events("gang 1 was stopped")
            assert "it cannot reach rank" in stopped
            until(lambda: playing.events("gang 2 was stopped"), 60, "the handshake finds it too")
            assert any(address in playing.events("gang 2 was stopped")[0] for address in network.hosts.values())
            network.mend()
            until(lambda: playing.gang() > 2 and playing.step() > 0, 150, "a later gang trains")
            (tmp_path / "GO").touch()
            job = playing.buyer.ended(playing.job_id, 120)
            assert (job["status"], job["paid"], job["held"]) == ("COMPLETED", 2, 0), job["reason"]
            assert playing.starts()[-1] >= 5
            model = torch.load(io.BytesIO(playing.buyer.model(playing.job_id)), weights_only=True)
            last = max(subtask["epoch"] for subtask in job["subtasks"])
            assert model["weight"].tolist() == [[last, last]]
            assert platform.gridx("check-ledger").returncode == 0
        finally:
            platform.close()


class TestPort:
    def test_a_taken_one_is_said_and_used_once_it_is_free(self, tmp_path: Path) -> None:
        port = free_port()
        platform = Platform(tmp_path / "home", settings={"GRIDX_ORCHESTRATOR_PORT": str(port)})
        try:
            with socket.create_server(("127.0.0.1", port)):
                platform.start()
                buyer = User.register(platform, "buyer@example.com", "buyer")
                job_id = buyer.submit(COUNTING, ROWS, mode="ddp", chunks=2)
                until(lambda: f"port {port} on 127.0.0.1 is taken" in (buyer.job(job_id).get("waiting_for") or ""), 60, "it is said")
            until(lambda: "no agent online offers any" in (buyer.job(job_id).get("waiting_for") or ""), 60, "it listens")
        finally:
            platform.close()
