"""A Storage server of Supabase, in memory, on localhost: the routes that Grid-X uses, answering as the real one does.

Told from the real server's source: nearly every error is HTTP 400 with its meaning in the body's `statusCode`; TUS routes answer with
the meaning itself and plain text; links are relative; an upload token is good for one path, and says whether it may replace; sizes of
raw uploads are judged by the announced length alone; TUS wants `x-upsert` with every request and parts of exactly 6 MiB.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

from tests.support.fake_supabase_routes import ROUTES, Cut, Request
from tests.support.fake_supabase_state import ApiError, Fault, State

KEY = "service-role-key-of-the-fake"
_PREFIX = "/storage/v1"


class FakeSupabase(State):
    """`with FakeSupabase() as fake:` serves at `fake.url`."""

    def __init__(self) -> None:
        super().__init__()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "FakeSupabase":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(fake: FakeSupabase) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.fake = fake
    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeSupabase

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_any(self) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        path = unquote(parts.path)
        line = f"{self.command} {path.removeprefix(_PREFIX)}"
        body = self._body()
        with self.fake.lock:
            self.fake.requests.append(line)
            fault = self.fake.take_fault(line)
        try:
            if fault is not None and fault.kind == "refuse":
                raise ApiError(fault.status, "Fault", "made to fail")
            self._route(line, body, fault)
        except ApiError as error:
            self._refuse(error, is_tus="/upload/resumable" in path)
        except Cut:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

    def _route(self, line: str, body: bytes, fault: Fault | None) -> None:
        if fault is not None and fault.kind == "drop" and not line.startswith("PATCH"):
            raise Cut
        for pattern, needs_key, action in ROUTES:
            match = re.fullmatch(pattern, line)
            if match is None:
                continue
            if needs_key and self.headers.get("authorization") != f"Bearer {KEY}":
                raise ApiError(403, "Unauthorized", "Invalid Compact JWS")
            with self.fake.lock:
                status, headers, content = action(
                    Request(self.fake, httpx.Headers(self.headers.items()), self.query, body, fault), *match.groups()
                )
            self._answer(status, headers, content, is_forgotten=fault is not None and fault.kind == "forget")
            return
        self._answer(404, {"content-type": "application/json"}, b'{"message": "Route not found", "error": "Not Found", "statusCode": 404}')

    def _refuse(self, error: ApiError, *, is_tus: bool) -> None:
        if is_tus:
            self._answer(error.status, {"content-type": "text/plain"}, error.message.encode())
            return
        body = {"statusCode": str(error.status), "error": error.error, "message": error.message}
        self._answer(500 if error.status == 500 else 400, {"content-type": "application/json"}, json.dumps(body).encode())

    def _answer(self, status: int, headers: dict[str, str], content: bytes, *, is_forgotten: bool = False) -> None:
        if is_forgotten and self.command != "GET":
            raise Cut
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if is_forgotten:  # half of a download
            self.wfile.write(content[: len(content) // 2])
            raise Cut
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        blocks: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            blocks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(blocks)
