"""The real engine: what a hostile script tries, and what must not be left behind."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from gridx_worker.dependencies import PipSettings
from gridx_worker.sandbox.base import ProviderLimits, SandboxUnavailable
from gridx_worker.sandbox.container import LABEL, find_differences, find_problems, is_leftover, make_labels, tmpfs_volume_options
from gridx_worker.sandbox.docker import DockerSandbox, ImageMissing
from gridx_worker.sandbox.docker_pip import pip_options
from tests.worker.sandbox.conftest import LIMITS, MB, Bench

pytestmark = pytest.mark.docker

MINIMAL = "open('model.pth', 'wb').write(b'x')\n"
ESCAPES = r"""
import ctypes, os, pathlib, socket
def attempt(name, action):
    try:
        print(name, "GOT", repr(action()))
    except BaseException as error:
        print(name, "refused", type(error).__name__, getattr(error, "errno", ""))
attempt("uid", lambda: (_ for _ in ()).throw(PermissionError()) if os.getuid() == 1000 else os.getuid())
attempt("root-write", lambda: open("/etc/evil", "w"))
attempt("task-write", lambda: open("/gridx/launcher.py", "a"))
attempt("input-write", lambda: open("data.csv", "a"))
attempt("network", lambda: socket.create_connection(("172.17.0.1", 80), timeout=2))
attempt("interfaces", lambda: [name for _, name in socket.if_nameindex() if name.startswith(("eth", "en", "wl"))][0])
attempt("docker-socket", lambda: os.stat("/var/run/docker.sock"))
attempt("setuid", lambda: os.setuid(0))
attempt("mount", lambda: (_ for _ in ()).throw(OSError()) if ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, b"") else "mounted")
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
attempt("ptrace", lambda: call(101, 16, 1, 0, 0))
attempt("read-launcher", lambda: open("/proc/1/mem", "rb"))
attempt("launchers-files", lambda: os.listdir("/proc/1/fd"))
attempt("io-uring", lambda: call(425, 8, ctypes.create_string_buffer(120)))
attempt("unshare", lambda: call(272, 0x10000000))
attempt("shared-memory", lambda: call(29, 0, 4096, 0o1600))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW))
attempt("kill-launcher", lambda: (_ for _ in ()).throw(OSError()) if os.kill(1, 9) is None and os.path.exists("/proc/1/status") else "dead")
attempt("chroot", lambda: os.chroot("/tmp"))
attempt("device", lambda: os.mknod("/tmp/mem", 0o600 | 0o020000, os.makedev(1, 1)))
status = pathlib.Path("/proc/self/status").read_text()
print("status", *(status.split(name)[1].split()[0] for name in ("CapEff:", "CapBnd:", "NoNewPrivs:")))
print("visible", sorted(os.listdir(".")), sorted(os.listdir("/gridx")))
def fill(path):
    with open(path, "wb") as file:
        for _ in range(4000): file.write(bytes(1_000_000)); file.flush()
attempt("fill-tmp", lambda: fill("/tmp/fill")); os.unlink("/tmp/fill")
attempt("fill-work", lambda: fill("fill")); os.unlink("fill")
def inodes(path):
    for number in range(200_000): open(f"{path}/{number}", "w").close()
attempt("inodes-work", lambda: (os.mkdir("many"), inodes("many")))
open("model.pth", "wb").write(b"x") if not os.path.exists("many") else (os.system("rm -rf many"), open("model.pth", "wb").write(b"x"))
"""


def everything(client: docker.DockerClient) -> set[str]:
    containers = {str(each.name) for each in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)}
    return containers | {str(each.name) for each in client.volumes.list(filters={"label": LABEL})}


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Containers are removed in the background."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def client() -> docker.DockerClient:
    return docker.from_env(timeout=60)


class TestEscapes:
    def test_what_a_hostile_script_tries(self, docker_bench: Bench) -> None:
        outcome = docker_bench.run(ESCAPES, output_bytes=20 * MB, seconds=90)
        assert outcome.kind is None, docker_bench.text
        assert "GOT" not in docker_bench.text, docker_bench.text
        for name in ("ptrace", "read-launcher", "launchers-files", "io-uring", "unshare", "shared-memory", "vsock", "raw", "packet"):
            assert f"{name} refused" in docker_bench.text, docker_bench.text
        for name in ("network", "root-write", "task-write", "input-write", "setuid", "fill-tmp", "fill-work", "inodes-work"):
            assert f"{name} refused" in docker_bench.text, docker_bench.text
        assert "status 0000000000000000 0000000000000000 1" in docker_bench.text
        assert (
            "visible ['data.csv', 'train.py'] ['__init__.py', 'gridx_script.py', 'gridx_task.py', 'launcher.py', 'syscall_filter.py']"
            in docker_bench.text
        )

    def test_limits_are_those_of_the_engine(self, docker_bench: Bench, docker_sandbox: DockerSandbox, client: docker.DockerClient) -> None:
        found: list[dict[str, Any]] = []

        def look() -> None:
            for each in client.containers.list(filters={"label": f"{LABEL}=attempt"}):
                if docker_sandbox.owner in each.labels[f"{LABEL}.owner"]:
                    found.append(each.attrs)
            docker_bench.stop.throw("cancelled")

        docker_bench.output.when(lambda total: total > 0, look)
        docker_bench.run("print('here', flush=True)\nimport time\ntime.sleep(600)")
        host = found[0]["HostConfig"]
        assert host["Memory"] == host["MemorySwap"] == LIMITS.memory_bytes
        assert (host["PidsLimit"], host["NanoCpus"], host["NetworkMode"], host["ReadonlyRootfs"]) == (LIMITS.processes, 10**9, "none", True)
        assert (host["Privileged"], host["CapDrop"], host["SecurityOpt"]) == (False, ["ALL"], ["no-new-privileges"])
        assert host["LogConfig"]["Config"] == {"max-size": "1m", "max-file": "2"}
        assert {mount["Destination"]: mount["RW"] for mount in found[0]["Mounts"]} == {"/work": True, "/input": False, "/gridx": False}


class TestNothingIsLeft:
    def test_after_every_kind_of_end(self, docker_bench: Bench, client: docker.DockerClient) -> None:
        before = everything(client)
        docker_bench.run("raise SystemExit(1)")
        docker_bench.run("while True: pass", seconds=3)
        docker_bench.run(MINIMAL)
        docker_bench.run("raise SystemExit(1)", job_id=4)
        owner: str = docker_bench.sandbox.owner  # type: ignore[attr-defined]
        left = {name for name in everything(client) - before if owner in name}
        assert left, "each job's container stays for its next subtask"
        docker_bench.sandbox.forget([3, 4])
        wait_until(lambda: not left & everything(client))

    def test_reaper_takes_what_a_killed_agent_left_but_not_what_others_use(
        self, docker_sandbox: DockerSandbox, sandbox_image: str, client: docker.DockerClient
    ) -> None:
        def create(owner: str, seconds: float) -> tuple[str, str]:
            labels = make_labels("attempt", owner=owner, agent="x", seconds=seconds)
            volume = client.volumes.create(driver_opts=tmpfs_volume_options(size=MB, inodes=10), labels=labels)
            container = client.containers.create(sandbox_image, ["sleep", "600"], network_mode="none", labels=labels)
            container.start()
            return str(container.name), str(volume.name)

        mine = create(docker_sandbox.owner, 3600)
        late = create("another-owner", -3600)
        others = create("another-owner", 3600)
        try:
            docker_sandbox.reap()
            assert not everything(client) & {*mine, *late}
            assert everything(client) >= set(others)
        finally:
            client.containers.get(others[0]).remove(force=True)
            client.volumes.get(others[1]).remove(force=True)


class TestPreflight:
    def test_missing_image(self, client: docker.DockerClient, tmp_path: Path) -> None:
        sandbox = DockerSandbox(client, agent_id="a", folder=tmp_path, limits=LIMITS, image="gridx-no-such-image")
        with pytest.raises(ImageMissing, match="gridx-worker build-image"):
            sandbox.prepare()

    def test_limits_that_would_not_be_enforced(self, client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        info = client.info() | {"PidsLimit": False, "MemoryLimit": False}
        monkeypatch.setattr(type(client), "info", lambda self: info)
        assert find_problems(client) == ["the kernel does not support memory limits", "the kernel does not support process limits"]
        sandbox = DockerSandbox(client, agent_id="a", folder=tmp_path, limits=ProviderLimits())
        with pytest.raises(SandboxUnavailable, match="process limits"):
            sandbox.prepare()

    def test_what_stands_in_the_image(self, docker_sandbox: DockerSandbox) -> None:
        info = docker_sandbox.prepare()
        assert info.python_version.startswith("3.11.")
        assert info.versions["torch"].startswith("2.13.")
        assert {"numpy", "pandas", "scikit-learn"} <= info.versions.keys()
        assert info.image_id is not None
        assert info.image_id.startswith("sha256:")


class TestGpu:
    def test_an_attempt_gets_the_one_that_was_offered_and_no_other(
        self, docker_sandbox: DockerSandbox, client: docker.DockerClient, sandbox_image: str, tmp_path: Path
    ) -> None:
        """No GPU is needed for that: the container is created, looked at as always, and never started."""
        limits = replace(LIMITS, gpu="1")
        (tmp_path / "task").mkdir()
        sandbox = DockerSandbox(client, agent_id="a", folder=tmp_path, limits=limits, image=sandbox_image)
        asked = sandbox._settings(sandbox_image, "gridx-gpu-test", tmp_path, None, 60)  # pyright: ignore[reportPrivateUsage]
        without = docker_sandbox._settings(sandbox_image, "gridx-gpu-test", tmp_path, None, 60)  # pyright: ignore[reportPrivateUsage]
        container = sandbox._create("gridx-gpu-test", asked)  # pyright: ignore[reportPrivateUsage]
        try:
            container.reload()
            [request] = container.attrs["HostConfig"]["DeviceRequests"]
            assert (request["DeviceIDs"], request["Capabilities"], request["Count"]) == (["1"], [["gpu"]], 0)
            assert find_differences(container.attrs, asked) == []
            assert any("devices" in words for words in find_differences(container.attrs, without))
        finally:
            container.remove(force=True, v=True)
            client.volumes.get("gridx-gpu-test").remove(force=True)


class TestIsLeftover:
    @pytest.mark.parametrize(("owner", "seconds", "in_use", "expected"), [
        ("me", 3600, False, True), ("me", -3600, True, False), ("other", 3600, False, False), ("other", -3600, False, True),
        ("other", -10, False, False),
    ])  # fmt: skip
    def test_whose_and_when(self, owner: str, seconds: float, in_use: bool, expected: bool) -> None:
        labels = make_labels("attempt", owner=owner, agent="a", seconds=seconds)
        assert is_leftover(labels, owner="me", in_use=in_use) is expected


class TestPipOptions:
    def test_local_places_are_mounted_and_local_indexes_left_behind(self, tmp_path: Path) -> None:
        cert = tmp_path / "ca.pem"
        cert.touch()
        settings = PipSettings(
            index_url="https://index.example/simple",
            extra_index_urls=("file:///srv/simple",),
            find_links=(str(tmp_path),),
            cert=cert,
            trusted_hosts=("h",),
        )
        options, mounts = pip_options(settings)
        assert options == [
            "--index-url", "https://index.example/simple", "--find-links", "/find-links/0", "--cert", "/ca.pem", "--trusted-host", "h",
        ]  # fmt: skip
        assert [(mount["Target"], mount["ReadOnly"]) for mount in mounts] == [("/find-links/0", True), ("/ca.pem", True)]


def test_time_of_a_container_is_cut_by_the_agent_not_by_the_script(docker_bench: Bench) -> None:
    script = "import signal\nfor number in set(signal.valid_signals()) - {9, 19}:\n    signal.signal(number, signal.SIG_IGN)\n"
    before = time.monotonic()
    assert docker_bench.run(script + "while True: pass", seconds=3).kind == "timeout"
    assert time.monotonic() - before < 40


def test_no_process_of_a_script_survives(docker_bench: Bench) -> None:
    docker_bench.run("import os, time\nif os.fork() == 0:\n    os.execvp('sleep', ['sleep', '98765'])\nopen('model.pth','wb').write(b'x')")
    assert "sleep 98765" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
