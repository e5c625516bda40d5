"""Both sandboxes, real, behind one fixture; and what a test needs to run a script in them."""

import os
import time
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only place that packages come from; shared by a module's tests, so that each uses names of its own."""
    folder = tmp_path_factory.mktemp("wheels")
    folder.chmod(0o755)  # the sandbox's user reads it
    return folder


@pytest.fixture(scope="module")
def process_sandbox(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessSandbox]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            patch.delenv(name)
        patch.setenv("PIP_FIND_LINKS", str(wheels))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        sandbox = ProcessSandbox(folder=tmp_path_factory.mktemp("process"), limits=LIMITS)
        yield sandbox
        sandbox.close()


@pytest.fixture(scope="module")
def docker_sandbox(wheels: Path, tmp_path_factory: pytest.TempPathFactory, sandbox_image: str) -> Iterator[DockerSandbox]:
    folder, client = tmp_path_factory.mktemp("docker"), docker.from_env(timeout=60)
    sandbox = DockerSandbox(client, agent_id="agent-1", folder=folder, limits=LIMITS, image=sandbox_image, pip=pip_settings(wheels))
    yield sandbox
    sandbox.close()


@pytest.fixture
def docker_bench(docker_sandbox: DockerSandbox, tmp_path: Path) -> Bench:
    return Bench(docker_sandbox, tmp_path)


@pytest.fixture
def process_bench(process_sandbox: ProcessSandbox, tmp_path: Path) -> Bench:
    return Bench(process_sandbox, tmp_path)


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Runs a test once per sandbox."""
    return request.getfixturevalue(f"{request.param}_bench")
