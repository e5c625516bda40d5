"""Two ranks in two sandboxes: they reach one another and nothing else, and what they save can be read while they train."""

import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import pytest

from gridx_worker.ddp.sandboxes import GANG_VARIABLE, DockerRanks, ProcessRanks, RankSandbox
from gridx_worker.sandbox.base import Outcome, ProviderLimits, StopSwitch, Work
from gridx_worker.sandbox.output import BadOutput
from tests.worker.fakes import Output

LIMITS = ProviderLimits(cpus=1.0, memory_bytes=1024 * 1024**2)
SCRIPT = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(os.environ["RANK"]) + 1])
dist.all_reduce(total)
print("sum", total.item(), flush=True)
print("gang", "GRIDX_GANG" in os.environ, flush=True)
print("networks", sorted(os.listdir("/sys/class/net")), flush=True)
if os.environ["RANK"] == "0":
    torch.save({"w": total}, "model.pth")
dist.barrier()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def pair(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[RankSandbox]]:
    def make(number: int) -> RankSandbox:
        folder = tmp_path / f"rank-{number}"
        folder.mkdir()
        if kind == "process":
            return ProcessRanks(folder=folder, limits=LIMITS)
        image = request.getfixturevalue("sandbox_image")
        return DockerRanks(docker.from_env(timeout=60), agent_id=f"agent-{number}", folder=folder, limits=LIMITS, image=image)

    made = [make(number) for number in range(2)]
    yield made
    for sandbox in made:
        sandbox.close()


def work_of(tmp_path: Path, rank: int, gang: str, port: int, script: str = SCRIPT) -> Work:
    inputs = tmp_path / f"input-{rank}"
    inputs.mkdir()
    (inputs / "train.py").write_text(script)
    (inputs / "data.csv").write_text("x\n1\n")
    for path in (inputs, *inputs.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    environment = {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GRIDX_MODE": "ddp",
        "GLOO_SOCKET_IFNAME": "lo",
        GANG_VARIABLE: gang,
    }
    return Work(
        agent_id=f"agent-{rank}", job_id=1, task_id=rank + 1, attempt=1, input=inputs, output_name="model.pth" if rank == 0 else "",
        output=tmp_path / f"model-{rank}.pth", output_bytes=10**7, arguments=[], environment=environment,
        deadline=time.monotonic() + 280,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_ranks_train_in_step(pair: list[RankSandbox], tmp_path: Path, kind: str) -> None:
    gang, port = secrets.token_hex(8), 29500 if kind == "docker" else free_port()
    works = [work_of(tmp_path, rank, gang, port) for rank in range(2)]
    outputs = [Output(), Output()]
    assert pair[0].place() == pair[1].place()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(pair[rank].run, works[rank], on_output=outputs[rank], stop=StopSwitch()) for rank in range(2)]
        found: list[Outcome] = [each.result() for each in running]
    texts = [output.data.decode() for output in outputs]
    assert [(each.kind, each.exit_code) for each in found] == [(None, 0), (None, 0)], texts
    assert found[0].size > 0
    assert (found[1].size, found[1].sha256) == (0, ""), "another rank than 0 leaves no file"
    for text in texts:
        assert "sum 3.0" in text
        assert "gang False" in text
    if kind == "docker":
        assert all("networks ['lo']" in text for text in texts), "nothing but the loopback that they share"
        assert docker.from_env().containers.list(all=True, filters={"name": f"gridx-gang-{gang}"}) == []


WAITING = """
import os, time
import torch
torch.save({"x": torch.ones(3)}, "checkpoint-1.partial")
os.replace("checkpoint-1.partial", "checkpoint-1.pth")
os.symlink("/etc/passwd", "checkpoint-2.pth")
print("saved", flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_checkpoint_is_read_while_the_script_runs(pair: list[RankSandbox], tmp_path: Path) -> None:
    sandbox, work = pair[0], work_of(tmp_path, 0, secrets.token_hex(8), 29500, WAITING)
    output, stop = Output(), StopSwitch()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, work, on_output=output, stop=stop)
        output.wait_for(b"saved")
        target = tmp_path / "taken.pth"
        size, digest = sandbox.read(work, "checkpoint-1.pth", target, 10**6)
        assert (target.stat().st_size, len(digest)) == (size, 64)
        refused: list[Callable[[], Any]] = [
            lambda: sandbox.read(work, "checkpoint-2.pth", target, 10**6),
            lambda: sandbox.read(work, "checkpoint-3.pth", target, 10**6),
            lambda: sandbox.read(work, "checkpoint-1.pth", target, 10),
        ]
        for call in refused:
            with pytest.raises(BadOutput):
                call()
        stop.throw("cancelled", "enough")
        assert running.result().stopped == "cancelled"
