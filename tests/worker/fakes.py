"""The edges, faked: the server (over real HTTP on localhost) and the sandbox (scripted)."""

import base64
import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gridx_worker.sandbox.base import Outcome, SandboxInfo, StopSwitch, Work

WAIT_S = 60.0  # a bound for failures only: tests wait for events
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
Route = Callable[["Call"], Answer]
SCRIPT = b"import torch\ntorch.save({}, 'model.pth')\n"
DATA = b"a,b\n1,2\n"


@dataclass(frozen=True)
class Call:
    """One request as the server saw it. `json` is None when the body is none."""

    method: str
    path: str
    token: str | None
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class FakeServer:
    """Answers by `routes` (path -> function), the rest with 404. `calls` holds everything that came; wait_for() waits for some of it."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.calls: list[Call] = []
        self.uploads: dict[str, bytes] = {}
        self.tasks: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.routes |= {
            "/agent/register": lambda call: (
                200,
                {"agent_id": call.json["agent_id"], "token": "token-1", "heartbeat_s": 0.05, "poll_s": 0.05},
            ),
            "/agent/heartbeat": lambda call: (200, {"heartbeat_s": 0.05, "poll_s": 0.05}),
            "/agent/profile": lambda call: (200, {"earned": 3, "accepted": 3}),
            "/agent/request_task": self._next_task,
            "/agent/metrics": lambda call: (200, {"stored": len(call.json["points"])}),
            "/agent/logs": lambda call: (200, {"offset": call.json["offset"] + len(call.json["text"].encode())}),
            "/agent/upload_url": lambda call: (
                200,
                {"url": f"/files/upload-{call.json['task_id']}", "headers": {"x-sign": "1"}, "expires_s": 60},
            ),
            "/agent/complete_task": lambda call: (200, {"status": "VERIFYING"}),
            "/agent/fail_task": lambda call: (200, {}),
            "/files/code": lambda call: (200, SCRIPT),
            "/files/data": lambda call: (200, DATA),
        }

    def add_task(self, **changes: Any) -> dict[str, Any]:
        """Queues an attempt; the agent gets it at its next request."""
        task = {
            "task_id": len(self.tasks) + 1,
            "job_id": 3,
            "lease_token": f"lease-{len(self.tasks) + 1}",
            "deadline_s": 60,
            "code_url": "/files/code",
            "code_sha256": hashlib.sha256(SCRIPT).hexdigest(),
            "chunk_data_url": "/files/data",
            "chunk_sha256": hashlib.sha256(DATA).hexdigest(),
            "chunk_bytes": len(DATA),
            "rows": 1,
        } | changes
        self.tasks.append(task)
        return task

    def of(self, path: str) -> list[Call]:
        with self._changed:
            return [call for call in self.calls if call.path == path]

    def wait_for(self, path: str, condition: Callable[[Call], bool] = lambda call: True, *, count: int = 1) -> Call:
        """The latest of at least `count` calls that meet the condition. Fails after WAIT_S."""
        found: list[Call] = []

        def enough() -> bool:
            found[:] = [call for call in self.calls if call.path == path and condition(call)]
            return len(found) >= count

        with self._changed:
            assert self._changed.wait_for(enough, WAIT_S), f"no {path} as expected; came: {[call.path for call in self.calls][-20:]}"
        return found[-1]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, call: Call) -> Answer:
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()
        if call.method == "PUT":
            self.uploads[call.path] = call.body
        route = self.routes.get(call.path)
        if route:
            return route(call)
        return (200, {}) if call.method == "PUT" else (404, {"code": "not_found", "detail": "no such thing"})

    def _next_task(self, call: Call) -> Answer:
        done = {each.json["task_id"] for path in ("/agent/complete_task", "/agent/fail_task") for each in self.of(path)}
        for task in self.tasks:
            if task["task_id"] not in done and not task.get("gone"):
                return 200, task
        return 200, {"task_id": None, "poll_after_s": 0.02}


class ScriptedSandbox:
    """Plays `script`, a function of (work, on_output, stop), for each run; without one it writes a small output at once."""

    def __init__(self, script: Callable[[Work, Callable[[bytes], None], StopSwitch], Outcome] | None = None) -> None:
        self.script = script or write_output
        self.works: list[Work] = []
        self.inputs: list[dict[str, bytes]] = []
        self.requirements: list[list[str]] = []
        self.install_error: Exception | None = None
        self.closed = False
        self.forgotten = set[int]()
        self.idled = threading.Semaphore(0)

    def prepare(self) -> SandboxInfo:
        return SandboxInfo(isolation="process", python_version="3.11.0", versions={"torch": "2.13.0"})

    def install(self, requirements: Sequence[str], *, cap_s: float, cap_bytes: int, deadline: float, stop: StopSwitch) -> Path | None:
        self.requirements.append(list(requirements))
        if self.install_error:
            raise self.install_error
        return None

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        self.works.append(work)
        self.inputs.append({path.name: path.read_bytes() for path in work.input.iterdir()})
        return self.script(work, on_output, stop)

    def why_unwell(self) -> str | None:
        return None

    def roots(self) -> list[int]:
        return []

    def idle(self) -> None:
        self.idled.release()

    def forget(self, job_ids: Collection[int]) -> None:
        self.forgotten = self.forgotten | set(job_ids)

    def reap(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def write_output(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch, content: bytes = b"weights") -> Outcome:
    work.output.write_bytes(content)
    return Outcome(exit_code=0, size=len(content), sha256=hashlib.sha256(content).hexdigest(), seconds=1.5)


def run_until_stopped(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
    """A script that trains until somebody stops it."""
    thrown = threading.Event()
    stop.on_throw(thrown.set)
    assert thrown.wait(WAIT_S)
    return Outcome(reason=stop.words, stopped=stop.reason, seconds=1.0)


def event(work: Work, **fields: Any) -> bytes:
    """A marked line as gridx_task writes it."""
    return f"\x1e{work.environment['GRIDX_MARK']} {json.dumps(fields)}\n".encode()


def make_wheel(folder: Path, name: str, version: str, *, requires: Sequence[str] = (), files: dict[str, str] | None = None) -> Path:
    """A minimal pure wheel whose module says its version."""
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    } | (files or {})
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}\n"
        for path, text in contents.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return wheel


@dataclass
class Output:
    """Collects a sandbox's output and lets a test wait for a part of it."""

    data: bytes = b""
    keep: int = 1_000_000
    total: int = 0
    _trigger: tuple[Callable[[int], bool], Callable[[], None]] | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, block: bytes) -> None:
        with self._changed:
            self.total += len(block)
            self.data = (self.data + block)[-self.keep :]
            self._changed.notify_all()
        if self._trigger and self._trigger[0](self.total):
            self._trigger[1]()

    def when(self, condition: Callable[[int], bool], action: Callable[[], None]) -> None:
        """Acts as soon as the bytes that came so far meet the condition."""
        self._trigger = (condition, action)

    def wait_for(self, part: bytes) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: part in self.data, WAIT_S * 2), self.data[-2000:]


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            token = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Call(self.command, self.path, token, headers, body))
            status, content = answer[0], answer[1]
            if status == 0:  # the network fails
                self.close_connection = True
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in (answer[2] if len(answer) == 3 else {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = handle_any

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler
