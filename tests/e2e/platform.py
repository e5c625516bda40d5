"""The real thing for end-to-end tests: `gridx serve` and `gridx-worker run` as processes of their own, on loopback."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

BIN = Path(sys.executable).parent
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICK = {"GRIDX_LEASE_S": "6", "GRIDX_SWEEP_S": "0.5", "GRIDX_HEARTBEAT_S": "0.5", "GRIDX_POLL_S": "0.2", "GRIDX_ORCHESTRATOR_PORT": "0"}
ENDS = ("COMPLETED", "FAILED", "CANCELLED")
_LOOK_EVERY_S = 0.05
T = TypeVar("T")


def until(look: Callable[[], T | None], seconds: float, what: str) -> T:
    """What `look` returns once it is something, looking again and again for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(_LOOK_EVERY_S)
    raise AssertionError(f"not within {seconds} s: {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def breast_cancer() -> bytes:
    """The CSV that the examples read, made by the example's own program."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "data.csv"
        subprocess.run([sys.executable, str(EXAMPLES / "breast_cancer" / "make_data.py"), str(path)], check=True, capture_output=True)
        return path.read_bytes()


@dataclass
class Platform:
    """A server with its own home and database. Everything it starts ends with `close`."""

    home: Path
    database_url: str = ""
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """Further settings of everything it starts."""
    host: str = "127.0.0.1"
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list["subprocess.Popen[bytes]"])
    server: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the server, on the same port as before, and wait until it answers."""
        if not self.port:
            self.port = free_port()
        self.server = self.run("server", [str(BIN / "gridx"), "serve", "--host", self.host, "--port", str(self.port)])
        until(self.is_up, 90, "the server answers")

    def is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, name: str, command: list[str]) -> "subprocess.Popen[bytes]":
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GRIDX_", "WORKER_"))}
        env = kept | QUICK | self.settings | {"GRIDX_HOME": str(self.home), "DATABASE_URL": self.database_url, "JWT_SECRET_KEY": ""}
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / f"{name}.log").open("ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.home, start_new_session=True
            )
        self.processes.append(process)
        return process

    def child(self, module: str) -> psutil.Process:
        """The server's child that runs `python -m module`."""
        assert self.server is not None

        def look() -> psutil.Process | None:
            for process in psutil.Process(self.server.pid if self.server else 0).children():
                if module in process.cmdline():
                    return process
            return None

        return until(look, 30, f"a process of {module}")

    def gridx(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        env = os.environ | {"GRIDX_HOME": str(self.home), "DATABASE_URL": self.database_url, "JWT_SECRET_KEY": ""}
        return subprocess.run([str(BIN / "gridx"), *arguments], env=env, capture_output=True, text=True, timeout=120, check=False)

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(25)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@dataclass
class User:
    """Somebody logged in. Calls are repeated while the server is away, as the web app does."""

    platform: Platform
    id: int
    token: str

    @classmethod
    def register(cls, platform: Platform, email: str, role: str) -> "User":
        body = {"email": email, "password": "correct horse", "role": role}
        answer = httpx.post(f"{platform.url}/auth/register", json=body, timeout=30)
        assert answer.status_code == 201, answer.text
        token = httpx.post(f"{platform.url}/auth/login", json=body, timeout=30).json()["access_token"]
        return cls(platform, answer.json()["id"], token)

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        return httpx.request(method, self.platform.url + path, headers={"Authorization": f"Bearer {self.token}"}, timeout=30, **options)

    def credits(self) -> int:
        return self.call("GET", f"/auth/wallet/{self.id}").json()["credits"]

    def submit(self, script: str, csv: bytes, requirements: str = "", **fields: Any) -> int:
        files = {"file_code": ("train.py", script), "file_data": ("data.csv", csv), "file_req": ("requirements.txt", requirements)}
        answer = self.call("POST", "/jobs/upload", data={"title": "a job", **fields}, files=files)
        assert answer.status_code == 201, answer.text
        return answer.json()["job_id"]

    def job(self, job_id: int) -> dict[str, Any]:
        try:
            answer = self.call("GET", f"/jobs/{job_id}")
            return answer.json() if answer.status_code == 200 else {}
        except httpx.HTTPError:
            return {}

    def ended(self, job_id: int, seconds: float = 120) -> dict[str, Any]:
        """The job once it is at its end."""

        def look() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job.get("status") in ENDS else None

        try:
            return until(look, seconds, f"job {job_id} ends")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.job(job_id)}") from None

    def model(self, job_id: int) -> bytes:
        url = self.call("GET", f"/jobs/download/{job_id}").json()["final_result_url"]
        return httpx.get(self.platform.url + url, timeout=30).content


@dataclass
class AgentProcess:
    """A `gridx-worker run` that can be killed and started again under its name."""

    platform: Platform
    name: str
    seller: User
    sandbox: str
    key: str
    options: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    """Of its command line; `options` may name another address of the server."""
    process: "subprocess.Popen[bytes] | None" = None

    @classmethod
    def start_new(
        cls, platform: Platform, name: str, sandbox: str = "process", *options: str, prefix: tuple[str, ...] = ()
    ) -> "AgentProcess":
        seller = User.register(platform, f"{name}@sellers.example.com", "seller")
        key = seller.call("POST", "/agent/keys", json={"label": name}).json()["key"]
        agent = cls(platform, name, seller, sandbox, key, options, prefix)
        agent.start()
        return agent

    def start(self) -> None:
        command = [*self.prefix, str(BIN / "gridx-worker"), "run", "--server", self.platform.url, "--key", self.key, "--name", self.name]
        command += ["--sandbox", self.sandbox, "--state-dir", str(self.platform.home / "agents" / self.name), *self.options]
        if self.sandbox == "process":
            command += ["--python", sys.executable]
        self.process = self.platform.run(self.name, command)
        until(self.is_online, 90, f"{self.name} is online")

    def is_online(self) -> bool:
        answer = self.seller.call("GET", f"/stats/agents/{self.name}")
        return answer.status_code == 200 and answer.json()["status"] != "OFFLINE"

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)
