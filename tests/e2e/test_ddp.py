"""Synchronous training through real processes: server, orchestrator, agents, sandboxes; machines that die in the middle."""

import csv
import io
import runpy
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from sklearn.datasets import load_breast_cancer

from tests.e2e.platform import AgentProcess, Platform, User, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ddp_breast_cancer" / "train.py"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


def breast_cancer() -> bytes:
    bunch: Any = load_breast_cancer()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(name.replace(" ", "_") for name in bunch.feature_names), "benign"])
    writer.writerows([*map(float, row), int(label)] for row, label in zip(bunch.data, bunch.target, strict=True))
    return text.getvalue().encode()


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
    job = buyer.ended(job_id, 240)
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

    @pytest.mark.docker
    @pytest.mark.usefixtures("sandbox_image")
    def test_in_docker(self, platform: Platform, tmp_path: Path) -> None:
        run_example(platform, tmp_path, "docker")
