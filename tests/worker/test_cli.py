"""The program itself, as a provider starts it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gridx_worker import cli
from tests.worker.fakes import WAIT_S, FakeServer

SLOW = b"import time\nprint('training', flush=True)\ntime.sleep(600)\n"


class Program:
    """`gridx-worker run` with the process sandbox, as a process of its own."""

    def __init__(self, server: FakeServer, folder: Path, *arguments: str, key: str = "key-1") -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRIDX_", "WORKER_"))} | {"GRIDX_KEY": key}
        command = [sys.executable, "-m", "gridx_worker.cli", "run", "--server", server.url, "--name", "a", "--state-dir", str(folder)]
        self.log = folder / "log"
        folder.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, *(arguments or ("--sandbox", "process"))], stderr=log, env=environment)

    def wait(self) -> int:
        return self.process.wait(WAIT_S)

    def script(self) -> psutil.Process:
        """The running train.py: the youngest descendant."""
        return psutil.Process(self.process.pid).children(recursive=True)[-1]


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        with contextlib.suppress(ProcessLookupError):
            program.process.kill()
        program.process.wait()


def gone(process: psutil.Process) -> bool:
    """Whether it ends within WAIT_S. It is no child of ours, so it has to be asked."""
    deadline = time.monotonic() + WAIT_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(0.05)
    return True


class TestRun:
    def test_a_real_attempt(self, server: FakeServer, tmp_path: Path, programs: list[Program]) -> None:
        server.add_task()
        programs.append(Program(server, tmp_path / "s"))
        server.wait_for("/agent/complete_task")
        programs[0].process.send_signal(signal.SIGTERM)
        assert programs[0].wait() == 0
        assert "your own code only" in programs[0].log.read_text()
        assert b"model" not in server.uploads["/files/upload-1"][:4]
        assert server.uploads["/files/upload-1"][:2] == b"PK"

    def test_killed_agent_leaves_no_training_behind_and_its_successor_does_the_attempt_anew(
        self, server: FakeServer, tmp_path: Path, programs: list[Program]
    ) -> None:
        quick = server.routes["/files/code"]
        server.routes["/files/code"] = lambda call: (200, SLOW)
        server.add_task(code_sha256=None)
        programs.append(Program(server, tmp_path / "s"))
        server.wait_for("/agent/logs", lambda call: "training" in call.json["text"])
        script = programs[0].script()
        programs[0].process.send_signal(signal.SIGKILL)
        programs[0].wait()
        assert gone(script)
        server.routes["/files/code"] = quick
        programs.append(Program(server, tmp_path / "s"))
        assert server.wait_for("/agent/complete_task").json["lease_token"] == "lease-1"
        assert len(server.of("/agent/register")) == 1

    def test_second_signal_ends_the_attempt_and_reports_it(self, server: FakeServer, tmp_path: Path, programs: list[Program]) -> None:
        server.routes["/files/code"] = lambda call: (200, SLOW)
        server.add_task(code_sha256=None)
        programs.append(Program(server, tmp_path / "s"))
        server.wait_for("/agent/logs", lambda call: "training" in call.json["text"])
        script = programs[0].script()
        programs[0].process.send_signal(signal.SIGINT)
        server.wait_for("/agent/heartbeat", count=len(server.of("/agent/heartbeat")) + 2)  # it goes on working
        assert programs[0].process.poll() is None
        programs[0].process.send_signal(signal.SIGINT)
        assert programs[0].wait() == 0
        assert server.of("/agent/fail_task")[0].json["kind"] == "shutdown"
        assert gone(script)

    def test_second_agent_of_the_same_name_is_refused(self, server: FakeServer, tmp_path: Path, programs: list[Program]) -> None:
        programs.append(Program(server, tmp_path / "s"))
        server.wait_for("/agent/request_task")
        programs.append(Program(server, tmp_path / "s"))
        assert programs[1].wait() == 1
        assert "another --name" in programs[1].log.read_text()

    def test_refused_key_ends_with_advice(self, server: FakeServer, tmp_path: Path, programs: list[Program]) -> None:
        server.routes["/agent/register"] = lambda call: (401, {"code": "bad_key", "detail": "unknown key"})
        programs.append(Program(server, tmp_path / "s"))
        assert programs[0].wait() == 1
        assert "Make a new key" in programs[0].log.read_text()

    def test_neither_key_nor_token_are_logged(self, server: FakeServer, tmp_path: Path, programs: list[Program]) -> None:
        server.add_task()
        programs.append(Program(server, tmp_path / "s", key="very-secret-key"))
        server.wait_for("/agent/complete_task")
        text = programs[0].log.read_text()
        assert "very-secret-key" not in text
        assert "token-1" not in text
        assert "/files/" not in text


class TestWithoutDocker:
    def test_refuses_to_start_and_says_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", "--key", "k", "--state-dir", str(tmp_path)])
        assert ended.value.code == 1
        said = capsys.readouterr().err
        assert "Install Docker and start it" in said
        assert "--sandbox process" in said

    def test_interpreter_without_pytorch(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
        python = tmp_path / "bare" / "bin" / "python"
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", "--key", "k", "--sandbox", "process", "--python", str(python), "--state-dir", str(tmp_path)])
        assert ended.value.code == 1
        assert "lacks torch, numpy, pandas" in capsys.readouterr().err


class TestDoctor:
    def test_reports_each_check(self, server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        server.routes["/health"] = lambda call: (200, {"status": "ok"})
        with pytest.raises(SystemExit) as ended:
            cli.main(["doctor", "--sandbox", "process", "--server", server.url, "--state-dir", str(tmp_path)])
        assert ended.value.code == 0
        assert "torch 2." in capsys.readouterr().err

    def test_server_away(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.main(["doctor", "--sandbox", "process", "--server", "http://127.0.0.1:9", "--state-dir", str(tmp_path)])
        assert ended.value.code == 1
        assert "FAILED" in capsys.readouterr().err


class TestDockerfile:
    def test_is_found_at_the_root_of_the_repository(self) -> None:
        from gridx_worker.images import find_dockerfile

        assert find_dockerfile().name == "Dockerfile.base"
