"""Both sandboxes, real, behind one fixture; and what a test needs to run a script in them."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest

from gridx_worker.dependencies import PipSettings
from gridx_worker.sandbox.base import Outcome, ProviderLimits, Sandbox, StopSwitch, Work
from gridx_worker.sandbox.docker import DockerSandbox
from gridx_worker.sandbox.process import ProcessSandbox
from tests.worker.fakes import Output

MB = 1024**2
MARK = "0f0f"
LIMITS = ProviderLimits(cpus=1.0, memory_bytes=700 * MB, processes=64)


@dataclass
class Bench:
    """A sandbox and a folder to feed it from."""

    sandbox: Sandbox
    folder: Path
    stop: StopSwitch = field(default_factory=StopSwitch)
    output: Output = field(default_factory=Output)
    number: int = 0

    def work(self, script: str, *, data: str = "a,b\n1,2\n", seconds: float = 60.0, **changes: Any) -> Work:
        self.number += 1
        inputs = self.folder / f"attempt-{self.number}" / "input"
        inputs.mkdir(parents=True)
        (inputs / "train.py").write_text(script)
        (inputs / "data.csv").write_text(data)
        environment = {"GRIDX_SEED": "5", "GRIDX_MARK": MARK, "GRIDX_KIND": "train", "GRIDX_HYPERPARAMETERS": "{}"}
        values: dict[str, Any] = {
            "agent_id": "agent-1",
            "job_id": 3,
            "task_id": self.number,
            "attempt": 1,
            "input": inputs,
            "output_name": "model.pth",
            "output": inputs.parent / "model.pth",
            "output_bytes": 50 * MB,
            "arguments": [],
            "environment": environment,
            "deadline": time.monotonic() + seconds,
        }
        return Work(**(values | changes))

    def run(self, script: str, **changes: Any) -> Outcome:
        return self.run_work(self.work(script, **changes))

    def run_work(self, work: Work) -> Outcome:
        self.last = work
        return self.sandbox.run(work, on_output=self.output, stop=self.stop)

    @property
    def text(self) -> str:
        return self.output.data.decode(errors="replace")

    @property
    def result(self) -> bytes:
        return self.last.output.read_bytes()


def pip_settings(folder: Path) -> PipSettings:
    """Packages come from this folder and from nowhere else."""
    return PipSettings(find_links=(str(folder),), no_index=True)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def make_process(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Bench]]:
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    made: list[ProcessSandbox] = []

    def make() -> Bench:
        folder = tmp_path / "process"
        folder.mkdir()
        made.append(ProcessSandbox(folder=folder, limits=LIMITS))
        return Bench(made[-1], tmp_path)

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture
def make_docker(tmp_path: Path, wheels: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], Bench]]:
    made: list[DockerSandbox] = []

    def make() -> Bench:
        image = request.getfixturevalue("sandbox_image")
        folder = tmp_path / "docker"
        folder.mkdir()
        client = docker.from_env(timeout=60)
        made.append(DockerSandbox(client, agent_id="agent-1", folder=folder, limits=LIMITS, image=image, pip=pip_settings(wheels)))
        return Bench(made[-1], tmp_path)

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Runs a test once per sandbox."""
    make: Callable[[], Bench] = request.getfixturevalue(f"make_{request.param}")
    return make()
