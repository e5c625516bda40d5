"""Docker is restarted, the disk is full, the agent is killed: work goes on by itself, each piece once."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import psutil
import pytest

from gridx_worker.agent import Agent
from gridx_worker.config import Config
from gridx_worker.sandbox.base import Outcome, ProviderLimits, StopSwitch, Work
from gridx_worker.sandbox.container import LABEL
from gridx_worker.sandbox.docker import DockerSandbox
from gridx_worker.state import State
from tests.worker.fakes import WAIT_S, FakeServer, ScriptedSandbox, write_output

SLOW = b"import time\nprint('training', flush=True)\ntime.sleep(600)\n"
QUICK = b"open('model.pth', 'wb').write(b'x')\n"
IMAGE = "python:3.11-slim"
MB = 1024**2


def until(condition: Callable[[], bool], seconds: float = WAIT_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class PrivateDocker:
    """A Docker daemon of the test's own, which it may stop and start: data, socket and containers apart from the machine's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bridge = f"gxt{os.getpid()}"
        self.address = f"unix://{folder}/sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec", "--pidfile", f"{self.folder}/pid"]
        # A bridge of its own, never --bridge=none: with that, a daemon removes docker0, which is another daemon's.
        alone = [f"--bridge={self.bridge}", "--iptables=false", "--ip-forward=false", "--ip-masq=false", "--shutdown-timeout=2"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(["dockerd", "-H", self.address, *options, *alone], stdout=log, stderr=log)
        until(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(WAIT_S)

    def make_bridge(self) -> None:
        subprocess.run(["ip", "link", "add", self.bridge, "type", "bridge"], check=True, capture_output=True)
        subprocess.run(["ip", "addr", "add", "10.213.77.1/24", "dev", self.bridge], check=True, capture_output=True)

    def remove(self) -> None:
        """Nothing of it is needed any more, so it gets no time to end well."""
        if self._process is not None and self._process.poll() is None:
            tree = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
            for process in tree:
                process.kill()
            self._process.wait(WAIT_S)
        subprocess.run(["ip", "link", "delete", self.bridge], check=False, capture_output=True)
        places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([each for each in places if each.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, image: str) -> None:
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(["docker", "-H", self.address, "load"], stdin=saved.stdout, check=True, capture_output=True)

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.address, timeout=60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return subprocess.run(["docker", "-H", self.address, "info"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def private_docker(sandbox_image: str) -> Iterator[PrivateDocker]:
    if os.geteuid() != 0 or shutil.which("dockerd") is None or shutil.which("ip") is None:
        pytest.skip("only root, with iproute2, can start a Docker daemon of its own")
    folder = Path("/tmp") / f"gridx-dockerd-{os.getpid()}"  # a socket's path is short
    folder.mkdir()
    made = PrivateDocker(folder)
    try:
        made.make_bridge()
        made.start()
        made.load(IMAGE)
        yield made
    finally:
        made.remove()


class Working:
    """An agent at work in a thread."""

    def __init__(self, config: Config, sandbox: DockerSandbox | ScriptedSandbox) -> None:
        self.state = State(config.state_dir)
        self.agent = Agent(config, sandbox, self.state)
        self.thread = threading.Thread(target=self.agent.run, daemon=True)

    def __enter__(self) -> "Working":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.agent.shut_down()
        self.agent.shut_down()
        self.thread.join(WAIT_S)
        self.state.close()
        assert not self.thread.is_alive()


@pytest.mark.long
@pytest.mark.docker
@pytest.mark.timeout(180)
class TestDockerRestarted:
    def test_in_mid_training(
        self, private_docker: PrivateDocker, server: FakeServer, make_config: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gridx_worker.agent.PAUSED_S", 0.2)
        config = make_config(sandbox="docker")
        limits = ProviderLimits(cpus=1.0, memory_bytes=300 * MB)
        sandbox = DockerSandbox(private_docker.client(), agent_id="agent-1", folder=config.state_dir, limits=limits, image=IMAGE)
        server.routes["/files/code"] = lambda call: (200, SLOW)
        server.add_task(code_sha256=None)
        with Working(config, sandbox):
            server.wait_for("/agent/logs", lambda call: "training" in call.json["text"])
            private_docker.stop()
            failed = server.wait_for("/agent/fail_task").json
            assert failed["kind"] == "agent", failed
            assert "Docker" in failed["reason"]
            assert "Docker does not answer" in server.wait_for("/agent/profile", lambda call: bool(call.json["paused"])).json["paused"]
            server.routes["/files/code"] = lambda call: (200, QUICK)
            server.add_task(code_sha256=None)
            asked = len(server.of("/agent/request_task"))
            server.wait_for("/agent/heartbeat", count=len(server.of("/agent/heartbeat")) + 3)
            assert len(server.of("/agent/request_task")) == asked, "it takes no work that it could not do"
            private_docker.start()
            assert server.wait_for("/agent/complete_task").json["task_id"] == 2
        assert len(server.of("/agent/fail_task")) == 1
        left = private_docker.client().containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
        assert left == []


@pytest.mark.docker
@pytest.mark.timeout(180)
class TestKilledAgent:
    def test_its_container_ends_with_it_and_the_attempt_begins_anew(self, sandbox_image: str, server: FakeServer, tmp_path: Path) -> None:
        server.routes["/files/code"] = lambda call: (200, SLOW)
        server.add_task(code_sha256=None)
        command = [sys.executable, "-m", "gridx_worker.cli", "run", "--server", server.url, "--name", "a", "--state-dir", str(tmp_path)]
        command += ["--image", sandbox_image, "--memory-mb", "700", "--key", "key-1"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRIDX_", "WORKER_"))}
        client = docker.from_env(timeout=60)
        mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}.agent=a"}
        before = {each.id for each in client.containers.list(filters=mine)}
        with (tmp_path / "log").open("ab") as log, contextlib.ExitStack() as stack:
            first = stack.enter_context(subprocess.Popen(command, stderr=log, env=environment))
            stack.callback(first.kill)
            server.wait_for("/agent/logs", lambda call: "training" in call.json["text"])
            first.kill()
            first.wait(WAIT_S)
            until(lambda: not {each.id for each in client.containers.list(filters=mine)} - before)  # nobody had to come and end it
            server.routes["/files/code"] = lambda call: (200, QUICK)
            second = stack.enter_context(subprocess.Popen(command, stderr=log, env=environment))
            stack.callback(second.kill)
            assert server.wait_for("/agent/complete_task").json["lease_token"] == "lease-1"
            second.terminate()
            assert second.wait(WAIT_S) == 0
        assert not {each.id for each in client.containers.list(all=True, filters=mine)} - before
        assert (len(server.of("/agent/register")), len(server.of("/agent/complete_task"))) == (1, 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk takes root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


class TestDiskFull:
    def test_before_and_in_an_attempt(self, small_disk: Path, server: FakeServer, make_config: Callable[..., Config]) -> None:
        filler = small_disk / "filler"

        def fill() -> None:
            with filler.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(MB))
                except OSError:
                    return

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            if work.task_id == 2:
                fill()
                return write_output(work, on_output, stop, b"w" * MB)
            return write_output(work, on_output, stop)

        with Working(make_config(state_dir=small_disk / "a"), ScriptedSandbox(script)):
            server.wait_for("/agent/request_task")
            fill()
            server.add_task()
            failed = server.wait_for("/agent/fail_task").json
            assert failed["kind"] == "agent"
            assert "disk has 0 MB free" in failed["reason"]
            filler.unlink()
            server.add_task()
            failed = server.wait_for("/agent/fail_task", count=2).json
            assert (failed["task_id"], failed["kind"]) == (2, "agent")
            assert "No space left on device" in failed["reason"]
            filler.unlink()
            server.add_task()
            assert server.wait_for("/agent/complete_task").json["task_id"] == 3
        assert len(server.of("/agent/complete_task")) == 1
