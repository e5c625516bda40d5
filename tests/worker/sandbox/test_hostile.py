"""The real engine against every way out that a stranger's script may try, beside another agent's training on the same machine."""

import contextlib
import json
import re
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest
from docker.types import Mount

from gridx_worker.doctor import trials
from gridx_worker.doctor.trials import HELPER
from gridx_worker.sandbox.base import Outcome, ProviderLimits
from gridx_worker.sandbox.container import LABEL
from gridx_worker.sandbox.docker import DockerSandbox
from gridx_worker.stream import BoundedLog, OutputSplitter
from tests.worker.sandbox.conftest import MARK, MB, Bench

pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]

ESCAPES = Path(trials.__file__).with_name("escape_script.py")
SAVE = "\nopen('model.pth', 'wb').write(b'x')\n"
AMPLE_S = 300.0
"""For what is not about time: it counts from before the container is made."""
DAEMON = "gridx-hostile-daemon"
NEIGHBOUR = """
import torch
model = torch.nn.Linear(8, 1)
steps = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    steps.zero_grad()
    model(torch.ones(4, 8)).pow(2).mean().backward()
    steps.step()
torch.save(model.state_dict(), "model.pth")
"""
LONGEST_PAUSE_S = 20.0
"""Generous: tests of others may run on the same cores. A machine that swaps or starves stands for minutes."""


@dataclass
class Neighbour:
    """Another agent on the same Docker, which trains one subtask after another; and how long this machine takes for next to nothing."""

    bench: Bench
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    pauses: list[float] = field(default_factory=list[float])
    _stop: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def start(self) -> None:
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._train, self._feel)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        self.bench.sandbox.close()

    def check(self) -> None:
        """It is well: the subtask in hand, and another one, end with the model that they always end with."""
        with self._changed:
            wanted = len(self.outcomes) + 2
            assert self._changed.wait_for(lambda: len(self.outcomes) >= wanted, 100), "the neighbour does not get on"
            assert {outcome.kind for outcome in self.outcomes} == {None}, self.outcomes[-3:]
            assert len({outcome.sha256 for outcome in self.outcomes}) == 1
        assert max(self.pauses) < LONGEST_PAUSE_S

    def _train(self) -> None:
        while not self._stop.is_set():
            outcome = self.bench.run(NEIGHBOUR, job_id=77, seconds=600.0)
            with self._changed:
                self.outcomes.append(outcome)
                self._changed.notify_all()
            self._stop.wait(0.2)  # it leaves the cores to the test most of the time

    def _feel(self) -> None:
        while not self._stop.wait(0.2):
            started = time.monotonic()
            subprocess.run(["true"], check=True)
            self.pauses.append(time.monotonic() - started)


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory, sandbox_image: str) -> Iterator[Neighbour]:
    folder = tmp_path_factory.mktemp("neighbour")
    limits = ProviderLimits(cpus=1.0, memory_bytes=700 * MB)
    sandbox = DockerSandbox(docker.from_env(timeout=60), agent_id="neighbour", folder=folder, limits=limits, image=sandbox_image)
    made = Neighbour(Bench(sandbox, folder))
    made.start()
    yield made
    made.close()


@dataclass
class Outside:
    """What lies outside the sandbox and must stay out of reach: servers on this machine, a file, a secret in the environment."""

    folder: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    visitors: list[str] = field(default_factory=list[str])
    _sockets: list[socket.socket] = field(default_factory=list[socket.socket])

    def given(self) -> dict[str, object]:
        gateway = docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
        addresses = {gateway, "127.0.0.1", socket.gethostbyname(socket.gethostname())}
        connect = [(address, self._listen(socket.AF_INET, (address, 0))) for address in sorted(addresses)]
        name = f"gridx-{self.secret[:8]}"
        self._listen(socket.AF_UNIX, f"\0{name}")
        state = self.folder / "state.json"
        state.write_text(self.secret)
        return {"connect": connect, "abstract": [name], "exists": [str(state), str(self.folder)], "secret": self.secret}

    def _listen(self, family: int, address: str | tuple[str, int]) -> int:
        made = socket.socket(family)
        made.bind(address)
        made.listen()
        self._sockets.append(made)
        threading.Thread(target=self._welcome, args=(made,), daemon=True).start()
        return made.getsockname()[1] if family == socket.AF_INET else 0

    def _welcome(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.visitors.append(str(made.accept()[1]))

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path)
    yield made
    made.close()


def attempts_in(text: str) -> dict[str, tuple[bool, str]]:
    found = [json.loads(line.partition(" ")[2]) for line in text.splitlines() if line.startswith("ESCAPE ")]
    held = {each["name"]: (True, each["how"]) for each in found if each["held"]}
    return held | {each["name"]: (False, each["how"]) for each in found if not each["held"]}  # one that got out counts


class TestEscapes:
    def test_every_way_out_is_shut(
        self, docker_bench: Bench, neighbour: Neighbour, outside: Outside, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GRIDX_KEY", outside.secret)
        work = docker_bench.work(ESCAPES.read_text(), arguments=[json.dumps(outside.given())], seconds=AMPLE_S)
        (work.input / HELPER).write_bytes(ESCAPES.with_name(HELPER).read_bytes())
        outcome = docker_bench.run_work(work)
        assert outcome.kind is None, docker_bench.text
        tried = attempts_in(docker_bench.text)
        assert {name: how for name, (held, how) in tried.items() if not held} == {}
        # Not only refused, but refused by what should refuse it.
        for name, words in EXPECTED.items():
            assert words in tried[name][1], (name, tried[name])
        assert outside.visitors == []
        assert len(tried) > 90
        neighbour.check()

    def test_the_same_script_finds_its_way_out_of_a_container_without_our_fences(self, outside: Outside, sandbox_image: str) -> None:
        """Or it would tell nothing. Docker's own defaults, as root: it harms the container and nothing else."""
        given = outside.given() | {"spare": True}
        client = docker.from_env(timeout=60)
        worker = ESCAPES.parents[1]
        mounts = [
            Mount("/doctor", str(worker / "doctor"), "bind", True),
            Mount("/gridx", str(worker / "task"), "bind", True),
        ]
        command = 'mkdir -p /input /work && cd /work && python3 /doctor/escape_script.py "$GIVEN"; true'
        container = client.containers.run(
            sandbox_image, ["sh", "-c", command], user="0", mounts=mounts, environment={"GIVEN": json.dumps(given)}, entrypoint=[],
            mem_limit="700m", memswap_limit="700m", pids_limit=64, detach=True, labels={LABEL: "test"},
        )  # fmt: skip
        try:
            container.wait(timeout=60)
            text = container.logs(stdout=True, stderr=True, tail=500).decode()
        finally:
            container.remove(force=True)
        got = {name for name, (held, _) in attempts_in(text).items() if not held}
        assert got >= {
            "be root", "hold a capability", "write /taken", "make a device", "have an interface", "open a raw socket",
            "open a netlink socket",
            "reach a server on the provider's machine", "find the agent's environment", "call shmget",
        }, text  # fmt: skip
        assert outside.visitors != []


EXPECTED = {
    "call io_uring_setup": "Operation not permitted", "call ptrace": "Operation not permitted", "trace the launcher": "not permitted",
    "unshare the user name space": "Operation not permitted", "mount": "Operation not permitted",
    "read /proc/1/mem": "Permission denied", "read /proc/1/environ": "Permission denied", "write /taken": "Read-only file system",
    "reach a server on the provider's machine": "", "reach a nameless socket of the provider's machine": "Connection refused",
    "resolve a name": "name resolution", "ask a DNS server": "unreachable", "reach the internet": "unreachable",
    "reach the gateway": "unreachable", "reach the local network at 192.168.1.1": "unreachable",
    "reach the link-local metadata service": "unreachable", "open a raw socket": "not permitted", "open a vsock socket": "not supported",
    "start processes without end": "Resource temporarily unavailable", "open files without end": "Too many open files",
    "take 10 GB in a child": "signal 9", "write 10 GB to /tmp": "No space", "write 10 GB to /dev/shm": "No space",
    "make a file of 8 TB": "too large", "make a million files": "No space", "find a file of the host": "No such file",
}  # fmt: skip
LOOP = "import signal\nfor number in set(signal.valid_signals()) - {9, 19}:\n    signal.signal(number, signal.SIG_IGN)\nwhile True: pass"
FORKS = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
SHM_FILES = "import os\nfor n in range(1_000_000): os.close(os.open(f'/dev/shm/{n}', os.O_CREAT | os.O_WRONLY))"
DAEMONS = (
    "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    f"        os.execvp('sh', ['{DAEMON}', '-c', 'sleep 9999; true'])\n    os._exit(0)\nos.wait()" + SAVE
)
UNHARMED = {
    # name: (script, seconds, kind, what the reason says)
    "a loop that ignores every signal": (LOOP, 6, "timeout", "time limit"),
    "a fork bomb": (FORKS, 6, "timeout", "time limit"),
    "10 GB at once": ("held = b'x' * 10_000_000_000", AMPLE_S, "memory", "more than 700 MB of memory"),
    "10 GB bit by bit": ("held = []\nwhile True: held.append(b'x' * 50_000_000)", AMPLE_S, "memory", "more than 700 MB of memory"),
    "a million files in shared memory": (SHM_FILES, AMPLE_S, "memory", "more than 700 MB of memory"),
    "a daemon that left its parent": (DAEMONS, AMPLE_S, None, ""),
}  # fmt: skip
OUTPUTS = {
    "a link to a file of the host": ("import os\nos.symlink('/etc/shadow', 'model.pth')", "output", "not a regular file"),
    "a link to a device": ("import os\nos.symlink('/dev/zero', 'model.pth')", "output", "not a regular file"),
    "a pipe": ("import os\nos.mkfifo('model.pth')", "output", "not a regular file"),
    "a socket": ("import socket\nsocket.socket(socket.AF_UNIX).bind('model.pth')", "output", "not a regular file"),
    "a folder": ("import os\nos.mkdir('model.pth')", "output", "not a regular file"),
    "empty": ("open('model.pth', 'w')", "output", "is empty"),
    "absent": ("print('done')", "output", "wrote no model.pth"),
    "sparse, 8 TB": ("open('model.pth', 'wb').truncate(8 * 1024**4)", "script", "exited with code 1"),
    "sparse, as large as it may be": (f"open('model.pth', 'wb').truncate({340 * MB})", "output", f"{340 * MB} bytes; at most {50 * MB}"),
    "2 GB": ("with open('model.pth', 'wb') as file:\n    for _ in range(2048): file.write(bytes(1024**2))", "script memory", ""),
    "a device": ("import os\nos.mknod('model.pth', 0o600 | 0o020000, os.makedev(1, 5))", "script", "exited with code 1"),
    "among a million files": ("import os\nfor n in range(1_000_000): os.close(os.open(str(n), os.O_CREAT))", "script", "with code 1"),
}  # fmt: skip


class TestEnds:
    @pytest.mark.long
    @pytest.mark.parametrize("name", UNHARMED)
    def test_what_never_ends_or_takes_all(self, name: str, docker_bench: Bench, neighbour: Neighbour) -> None:
        script, seconds, kind, words = UNHARMED[name]
        docker_bench.run(SAVE, seconds=AMPLE_S)  # the container is there: the time that follows is the script's
        started = time.monotonic()
        outcome = docker_bench.run(script, seconds=seconds)
        assert (outcome.kind, outcome.stopped) == (kind, None), (outcome, docker_bench.text)
        assert words in outcome.reason
        assert docker_bench.text.count('"started"') == 2
        assert time.monotonic() - started < seconds + 90
        assert DAEMON not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
        neighbour.check()

    def test_outputs_that_are_none(self, docker_bench: Bench, neighbour: Neighbour) -> None:
        for name, (script, kind, words) in OUTPUTS.items():
            outcome = docker_bench.run(script, seconds=AMPLE_S)
            assert (outcome.kind or "none") in kind.split(), (name, outcome, docker_bench.text[-500:])
            assert words in outcome.reason, (name, outcome)
            assert not docker_bench.last.output.exists(), name
        neighbour.check()

    @pytest.mark.long
    @pytest.mark.parametrize("line", [b"x" * 1023 + b"\n", b"x" * 1024], ids=["a gigabyte of lines", "an endless line"])
    def test_prints_without_end(self, line: bytes, docker_bench: Bench, neighbour: Neighbour) -> None:
        log = BoundedLog(10 * MB)
        splitter = OutputSplitter(MARK, on_text=log.add, on_event=lambda event: None)
        count, seen = (1024 if line.endswith(b"\n") else 256), [0]

        def take(data: bytes) -> None:
            seen[0] += len(data)
            splitter.feed(data)

        work = docker_bench.work(f"import os\nfor _ in range({count}): os.write(1, {line!r} * 1024)" + SAVE, seconds=AMPLE_S)
        outcome = docker_bench.sandbox.run(work, on_output=take, stop=docker_bench.stop)
        assert outcome.kind is None, outcome
        assert seen[0] >= count * MB
        log.close()
        assert len(log.take(100 * MB)) < 11 * MB
        neighbour.check()


class TestAfterwards:
    def test_nothing_is_left(self, docker_bench: Bench, docker_sandbox: DockerSandbox) -> None:
        """The last of this file: the sandbox that took all of it is closed."""
        docker_bench.run(SAVE)
        docker_sandbox.close()
        client = docker.from_env(timeout=60)
        mine: dict[str, str | list[str] | bool] = {"label": f"{LABEL}.owner={docker_sandbox.owner}"}
        assert client.containers.list(all=True, filters=mine, ignore_removed=True) == []
        assert client.volumes.list(filters=mine) == []
        state = docker_sandbox._folder  # pyright: ignore[reportPrivateUsage]
        left = [str(path.relative_to(state)) for path in state.rglob("*") if path.is_file() and path.parts[-2] != "task"]
        assert left == []
        assert not re.search(DAEMON, subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout)
