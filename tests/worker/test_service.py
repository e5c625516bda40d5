"""The agent as a service, and taking it away again. systemd itself is not at hand in a test: a stand-in notes what it is told."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import docker
import pytest

from gridx_worker import cli, service
from gridx_worker.sandbox.container import LABEL, make_labels, owner_of, tmpfs_volume_options
from gridx_worker.state import State
from tests.worker.fakes import WAIT_S


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, and a systemctl that notes its calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "loginctl"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "{tmp_path}/calls"\n')
        (programs / name).chmod(0o755)
    for name in [name for name in os.environ if name.startswith(("GRIDX_", "WORKER_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def gridx_worker(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return int(ended.value.code or 0)


class TestInstall:
    def test_the_unit_runs_the_agent_as_it_was_set_up_and_hides_the_key(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PIP_INDEX_URL", 'https://index.example/100%/"x"')
        options = ["--cpus", "2", "--hours", "Mon-Fri 18:00-8:00", "--accept", "recipes", "--only-when-idle", "--gpu", "0"]
        assert gridx_worker("install", "--server", "https://grid.example", "--name", "lab", "--key", "gxk_secret", *options) == 0
        unit = service.unit_path("lab")
        text = unit.read_text()
        [command] = [line for line in text.splitlines() if line.startswith("ExecStart=")]
        for part in (
            "run --server https://grid.example --name lab",
            "--cpus 2.0",
            "--hours 'Mon-Fri 18:00-8:00'",
            "--accept recipes",
            "--gpu 0",
        ):
            assert part in command
        assert "--only-when-idle" in command
        assert "Restart=always" in text
        assert "gxk_secret" not in text
        key = home / ".gridx-worker" / "lab" / "key"
        assert key.read_text() == "gxk_secret\n"
        assert key.stat().st_mode & 0o777 == 0o600
        calls = (home.parent / "calls").read_text()
        assert "systemctl --user enable --now gridx-worker-lab.service" in calls
        if analyse := shutil.which("systemd-analyze"):
            checked = subprocess.run([analyse, "verify", "--user", str(unit)], capture_output=True, text=True, check=False)
            assert [line for line in checked.stderr.splitlines() if "gridx-worker-lab" in line] == []

    def test_without_systemd_it_says_what_to_do(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("PATH", str(home))
        assert gridx_worker("install", "--name", "lab") == 1
        assert "@reboot" in capsys.readouterr().err


class TestStop:
    def test_once_ends_it_after_its_task_and_now_at_once(self, tmp_path: Path) -> None:
        assert service.stop(tmp_path, now=False) == "no agent runs here"
        code = (
            "import signal, sys, pathlib\nfrom gridx_worker.state import State\nstate = State(pathlib.Path(sys.argv[1]))\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\nprint('up', flush=True)\n"
            "print(signal.sigwait([signal.SIGTERM]), flush=True)\n"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a")], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            assert service.running_pid(tmp_path / "a") == process.pid
            assert "after the task" in service.stop(tmp_path / "a", now=False)
            assert process.stdout.readline() == f"{signal.SIGTERM.value}\n"
        assert service.running_pid(tmp_path / "a") is None


class TestUninstall:
    @pytest.mark.docker
    def test_nothing_is_left(self, home: Path, sandbox_image: str, capsys: pytest.CaptureFixture[str]) -> None:
        base = home / ".gridx-worker"
        assert gridx_worker("install", "--name", "lab", "--key", "k") == 0
        (base / "venv" / "bin").mkdir(parents=True)
        (base / "lab" / "cache" / "3").mkdir(parents=True)
        (base / "lab" / "cache" / "3" / "rows").write_text("x")
        client = docker.from_env(timeout=60)
        labels = make_labels("attempt", owner=owner_of((base / "lab").resolve()), agent="lab", seconds=3600)
        client.volumes.create(driver_opts=tmpfs_volume_options(size=2**20, inodes=10), labels=labels)
        client.containers.create(sandbox_image, ["true"], network_mode="none", labels=labels)
        mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}.owner={labels[f'{LABEL}.owner']}"}
        assert client.volumes.list(filters=mine)
        assert gridx_worker("uninstall", "--name", "lab", "--keep-image") == 0
        assert client.containers.list(all=True, filters=mine) == []
        assert client.volumes.list(filters=mine) == []
        assert not base.exists()
        assert [path for path in home.rglob("*") if path.is_file()] == []
        assert "disable --now gridx-worker-lab.service" in (home.parent / "calls").read_text()

    def test_others_agents_and_the_programs_stay(self, home: Path) -> None:
        base = home / ".gridx-worker"
        for name in ("lab", "other", "venv"):
            (base / name).mkdir(parents=True)
        assert gridx_worker("uninstall", "--name", "lab", "--keep-image") == 0
        assert sorted(entry.name for entry in base.iterdir()) == ["other", "venv"]

    def test_a_running_agent_is_not_pulled_away(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        state = State(home / ".gridx-worker" / "lab")
        try:
            done: list[int] = []
            thread = threading.Thread(target=lambda: done.append(gridx_worker("uninstall", "--name", "lab", "--keep-image")))
            thread.start()
            thread.join(WAIT_S)
            assert done == [1]
            assert state.folder.exists()
        finally:
            state.close()
        assert "stop --now" in capsys.readouterr().err
