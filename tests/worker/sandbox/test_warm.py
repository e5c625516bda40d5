"""Containers that stay: the next script finds them warm, and nothing of the last one."""

import contextlib
import os
import time
from pathlib import Path

import docker
import pytest
from docker.errors import APIError

from gridx_worker.sandbox.base import StopSwitch
from gridx_worker.sandbox.container import LABEL, find_differences
from gridx_worker.sandbox.docker import DockerSandbox
from gridx_worker.sandbox.launch import Launcher, LauncherEnded
from tests.worker.sandbox.conftest import Bench

MINIMAL = "open('model.pth', 'wb').write(b'x')\n"
LITTER = (
    """
import os, subprocess, sys, time
for folder in ("/work", "/tmp", "/dev/shm", "."):
    os.makedirs(f"{folder}/left/deep"); open(f"{folder}/left/deep/file", "w").write("mine"); os.chmod(f"{folder}/left", 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "98764"])
    os._exit(0)
sys.modules["json"].dumps = None
"""
    + MINIMAL
)
LOOK = (
    """
import json, os
found = [os.path.join(path, name) for folder in ("/work", "/tmp", "/dev/shm") for path, _, names in os.walk(folder) for name in names]
processes = [name for name in os.listdir("/proc") if name.isdigit()]
commands = [open(f"/proc/{name}/cmdline").read() for name in processes]
print("FOUND", json.dumps([name for name in found if name != os.path.join(os.getcwd(), "train.py") and not name.startswith(os.getcwd())]))
print("SLEEPS", sum("98764" in each for each in commands), "BOOT", open("/proc/1/stat").read().split()[21])
"""
    + MINIMAL
)


def boot(text: str) -> str:
    return text.rpartition("BOOT ")[2].split()[0]


@pytest.mark.docker
class TestContainer:
    def test_the_next_script_of_a_job_finds_libraries_and_nothing_else(self, docker_bench: Bench) -> None:
        assert docker_bench.run(LOOK).kind is None, docker_bench.text
        first = boot(docker_bench.text)
        assert docker_bench.run(LITTER).kind is None, docker_bench.text
        assert docker_bench.run(LOOK).kind is None, docker_bench.text
        last = docker_bench.text.rpartition("FOUND")[2]
        assert last.startswith(" []"), last
        assert "SLEEPS 0" in last
        assert boot(last) == first  # the same container

    def test_another_job_gets_another_container(self, docker_bench: Bench) -> None:
        docker_bench.run(LOOK)
        docker_bench.run(LOOK, job_id=4)
        first, second = docker_bench.text.split("FOUND")[1:]
        assert boot(first) != boot(second)

    def test_the_spare_one_serves_a_new_job(self, docker_bench: Bench, docker_sandbox: DockerSandbox) -> None:
        docker_sandbox.forget([3, 4, 5])
        docker_sandbox.idle()
        docker_bench.run(LOOK, job_id=5)  # waits for it to be ready
        ready = time.monotonic()
        docker_sandbox.forget([5])
        docker_sandbox.idle()
        docker_bench.run(LOOK, job_id=6)
        assert time.monotonic() - ready < 60
        assert docker_bench.text.count("FOUND []") == 2

    def test_a_new_one_imports_pandas_only_for_scripts_that_name_it(self, docker_bench: Bench) -> None:
        loaded = "import sys\nprint('LOADED', *sorted({'numpy', 'pan' 'das', 'torch', 'torch._dynamo'} & set(sys.modules)))\n"
        for job_id, words, names in ((100, "", "numpy torch torch._dynamo"), (101, "# pandas\n", "numpy pandas torch torch._dynamo")):
            docker_bench.run(words + loaded + MINIMAL, job_id=job_id)
            assert docker_bench.text.rpartition("LOADED ")[2].splitlines()[0] == names

    def test_a_container_that_ended_meanwhile_is_not_used_again(self, docker_bench: Bench, docker_sandbox: DockerSandbox) -> None:
        docker_bench.run(LOOK)
        client = docker.from_env(timeout=60)
        for each in client.containers.list(filters={"label": LABEL}, ignore_removed=True):
            if each.labels[f"{LABEL}.owner"] == docker_sandbox.owner:
                with contextlib.suppress(APIError):  # of an earlier test, and just being removed
                    each.kill()
                    each.wait()
        assert docker_bench.run(LOOK).kind is None, docker_bench.text

    def test_no_signal_of_a_script_ends_the_launcher(self, docker_bench: Bench) -> None:
        docker_bench.run(LOOK)
        signals = "import os, signal\nfor number in signal.valid_signals():\n    os.kill(1, number)\n"
        assert docker_bench.run(signals + LOOK).kind is None, docker_bench.text
        assert boot(docker_bench.text) == boot(docker_bench.text.split("FOUND")[1])

    def test_memory_ends_the_script_and_not_the_container(self, docker_bench: Bench) -> None:
        docker_bench.run(LOOK)
        outcome = docker_bench.run("held = [bytearray(50_000_000) for _ in range(100)]")
        assert outcome.kind == "memory", outcome
        assert docker_bench.run(LOOK).kind is None
        assert boot(docker_bench.text) == boot(docker_bench.text.split("FOUND")[1])

    def test_a_container_that_differs_from_what_was_asked_for_is_refused(
        self, docker_bench: Bench, docker_sandbox: DockerSandbox, sandbox_image: str
    ) -> None:
        client = docker.from_env(timeout=60)
        docker_bench.run(LOOK)
        mine = [each for each in client.containers.list(filters={"label": LABEL}) if each.labels[f"{LABEL}.owner"] == docker_sandbox.owner]
        asked = docker_sandbox._settings(sandbox_image, "v", Path("/i"), None, 60)  # pyright: ignore[reportPrivateUsage]
        assert find_differences(mine[0].attrs, asked) == []
        for field, value in {"Memory": 0, "NetworkMode": "host", "Privileged": True, "CapAdd": ["SYS_ADMIN"], "PidsLimit": 0}.items():
            attrs = mine[0].attrs | {"HostConfig": mine[0].attrs["HostConfig"] | {field: value}}
            assert any(field in words for words in find_differences(attrs, asked)), field


class TestLauncherProtocol:
    def test_a_script_that_prints_pieces_of_the_token_loses_nothing(self) -> None:
        launcher, seen = Launcher(lambda data: None), list[bytes]()
        launcher._token, launcher._listener = b"\x00abc\n", seen.append  # pyright: ignore[reportPrivateUsage]
        for block in (b"one\x00", b"ab", b"x\x00a", b"\x00\x00abc\nnobody's"):
            launcher.on_output(block)
        assert b"".join(seen) == b"one\x00abx\x00a\x00"

    def test_a_launcher_that_ends_while_it_hands_a_file_over_is_noticed_at_once(self) -> None:
        launcher = Launcher(lambda data: None)
        launcher.on_answers(b'{"event": "file", "size": 10}\n')
        begun = time.monotonic()
        with launcher.taking("/work", "model.pth", 100) as (size, read):
            launcher.on_output(b"half")
            launcher.on_end()
            assert (size, read(100)) == (10, b"half")
            with pytest.raises(LauncherEnded):
                read(100)
        assert time.monotonic() - begun < 10

    def test_scripts_share_nothing_in_the_process_sandbox_either(self, process_bench: Bench) -> None:
        process_bench.run("import sys, os, random\nsys.modules['marked'] = 1\nos.environ['MARKED'] = '1'\n" + MINIMAL)
        process_bench.run("import sys, os\nprint('MARKS', 'marked' in sys.modules, 'MARKED' in os.environ)\n" + MINIMAL)
        assert "MARKS False False" in process_bench.text

    def test_a_killed_launcher_is_started_anew(self, process_bench: Bench) -> None:
        process_bench.run("import os\nprint('PARENT', os.getppid(), flush=True)\n" + MINIMAL)
        parent = int(process_bench.text.rpartition("PARENT ")[2].split()[0])
        os.kill(parent, 9)
        assert process_bench.run(MINIMAL).kind is None, process_bench.text

    def test_a_stop_before_the_start_is_seen(self, process_bench: Bench) -> None:
        process_bench.stop = StopSwitch()
        process_bench.stop.throw("cancelled")
        assert process_bench.run("import time\ntime.sleep(600)").stopped == "cancelled"
