"""The server as the agent sees it. The three outcomes of a failed call are decided here and nowhere else:

retry        429, 5xx, the network, a body that is not what it should be: tried again with growing pauses, up to a point in time
LeaseLost    409: the attempt is no longer ours
Refused      any other 4xx: trying again cannot help; Unauthorized (401) when a new registration did not help either
"""

import hashlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urljoin

import httpx
from pydantic import BaseModel, ValidationError

from gridx_protocol.messages import (
    CheckpointRequest,
    CheckpointUrlRequest,
    CompleteReply,
    CompleteRequest,
    ErrorBody,
    FailRequest,
    HeartbeatReply,
    HeartbeatRequest,
    LogsReply,
    LogsRequest,
    Message,
    MetricsReply,
    MetricsRequest,
    OutputUrlRequest,
    Profile,
    ProfileReply,
    RankRequest,
    RegisterReply,
    RegisterRequest,
    TaskReply,
    TaskRequest,
    UploadUrlReply,
    UploadUrlRequest,
)

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
BLOCK = 1024 * 1024
PlaceRequest = UploadUrlRequest | OutputUrlRequest | CheckpointUrlRequest
_PLACES: dict[type[PlaceRequest], str] = {
    UploadUrlRequest: "agent/upload_url",
    OutputUrlRequest: "agent/output_url",
    CheckpointUrlRequest: "agent/checkpoint_url",
}
Reply = TypeVar("Reply", bound=Message)
Result = TypeVar("Result")


class CallFailed(Exception):
    """A call did not succeed; the message is the server's, or the network's."""


class Unreachable(CallFailed):
    """Retried until the time was up, or until the agent was told to stop."""


class LeaseLost(CallFailed):
    """The attempt is no longer ours; its work is to be dropped."""


class Refused(CallFailed):
    """The server will never accept this call."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail or code or f"status {status}")
        self.status = status
        self.code = code


class Unauthorized(Refused):
    """Neither the token nor a new registration is accepted."""


class TooLarge(CallFailed):
    """A download is larger than its cap."""


class Client:
    """Thread-safe. `stop` ends pauses between tries; `renew` is called with the token that was refused and returns a new one or None."""

    def __init__(
        self,
        server: str,
        *,
        stop: threading.Event,
        renew: Callable[[str], str | None] | None = None,
        transport: httpx.BaseTransport | None = None,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self.server = server.rstrip("/") + "/"
        self.token: str | None = None
        self.renew = renew
        self._stop = stop
        self._first_pause_s = first_pause_s
        self._http = httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0), transport=transport, follow_redirects=False)

    def register(self, key: str, request: RegisterRequest, *, until: float) -> RegisterReply:
        """`until` here and below: the time.monotonic() value after which a failing call is given up with Unreachable.

        Refused with status 409: the id belongs to another seller.
        """
        try:
            return self._call("agent/register", request, RegisterReply, until=until, bearer=key)
        except LeaseLost as error:
            raise Refused(409, "agent_id_taken", str(error)) from error

    def profile(self, request: Profile, *, until: float) -> ProfileReply:
        return self._call("agent/profile", request, ProfileReply, until=until)

    def heartbeat(self, request: HeartbeatRequest, *, until: float) -> HeartbeatReply:
        return self._call("agent/heartbeat", request, HeartbeatReply, until=until)

    def request_task(self, request: TaskRequest, *, until: float) -> TaskReply:
        return self._call("agent/request_task", request, TaskReply, until=until)

    def request_rank(self, request: RankRequest, *, until: float) -> TaskReply:
        return self._call("agent/request_rank", request, TaskReply, until=until)

    def checkpoint(self, request: CheckpointRequest, *, until: float) -> None:
        self._call("agent/checkpoint", request, Message, until=until, outlive_stop=True)

    def metrics(self, request: MetricsRequest, *, until: float) -> MetricsReply:
        return self._call("agent/metrics", request, MetricsReply, until=until, outlive_stop=True)

    def logs(self, request: LogsRequest, *, until: float) -> LogsReply:
        return self._call("agent/logs", request, LogsReply, until=until, outlive_stop=True)

    def complete(self, request: CompleteRequest, *, until: float) -> CompleteReply:
        return self._call("agent/complete_task", request, CompleteReply, until=until, outlive_stop=True)

    def fail(self, request: FailRequest, *, until: float) -> None:
        self._call("agent/fail_task", request, Message, until=until, outlive_stop=True)

    def upload(self, request: PlaceRequest, path: Path, *, until: float, check: Callable[[], None]) -> None:
        """Asks where to put the file and puts it there, as often as it takes. `check` may raise to break off."""

        call = _PLACES[type(request)]

        def once() -> None:
            check()
            place = self._authorised(call, request, UploadUrlReply)
            headers = {**place.headers, "content-length": str(request.size)}
            answer = self._send("PUT", urljoin(self.server, place.url), content=_blocks(path, check), headers=headers)
            try:
                _raise_for(answer)
            except Refused as error:
                if error.status not in (400, 401, 403):
                    raise
                raise _Retry(f"the upload link was refused ({error})") from error  # expired: the next try asks for a new one

        self._retry("agent/upload", once, until=until, outlive_stop=True)

    def download(self, url: str, target: Path, *, sha256: str | None, cap: int, until: float, check: Callable[[], None]) -> int:
        """Streams a file to `target` (mode 0644), replacing it only when whole; returns its size.

        Raises TooLarge past `cap` bytes; a wrong hash counts as a bad body and is tried again.
        """
        partial = target.with_name(target.name + ".partial")

        def once() -> int:
            check()
            digest, size = hashlib.sha256(), 0
            with self._http.stream("GET", urljoin(self.server, url)) as answer:
                if answer.status_code != 200:
                    answer.read()
                    _raise_for(answer)
                    raise _Retry(f"status {answer.status_code}")
                with partial.open("wb") as file:
                    for block in answer.iter_bytes(BLOCK):
                        check()
                        size += len(block)
                        if size > cap:
                            raise TooLarge(f"the download is larger than {cap} bytes")
                        if time.monotonic() > until:
                            raise _Retry("the time is up")
                        digest.update(block)
                        file.write(block)
            if sha256 and digest.hexdigest() != sha256:
                raise _Retry("the content does not have the announced SHA-256")
            partial.chmod(0o644)
            partial.replace(target)
            return size

        try:
            return self._retry(target.name, once, until=until, outlive_stop=True)
        finally:
            partial.unlink(missing_ok=True)

    def reachable(self) -> str | None:
        """Asks GET /health once; None when it answers, else what went wrong."""
        try:
            answer = self._http.get(urljoin(self.server, "health"))
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        return None if answer.is_success else f"status {answer.status_code}"

    def close(self) -> None:
        self._http.close()

    def _call(
        self, path: str, request: Message, kind: type[Reply], *, until: float, bearer: str | None = None, outlive_stop: bool = False
    ) -> Reply:
        def once() -> Reply:
            return self._once(path, request, kind, bearer) if bearer else self._authorised(path, request, kind)

        return self._retry(path, once, until=until, outlive_stop=outlive_stop)

    def _authorised(self, path: str, request: Message, kind: type[Reply]) -> Reply:
        """One try with the agent's token; with a renewed one when that is refused."""
        token = self.token
        try:
            return self._once(path, request, kind, token)
        except Unauthorized:
            if not self.renew or not token or self.renew(token) is None:
                raise
        return self._once(path, request, kind, self.token)

    def _once(self, path: str, request: Message, kind: type[Reply], token: str | None) -> Reply:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        answer = self._send("POST", urljoin(self.server, path), content=request.model_dump_json().encode(), headers=headers)
        _raise_for(answer)
        try:
            return kind.model_validate_json(answer.content or b"{}")
        except ValidationError as error:
            raise _Retry(f"the answer is not a {kind.__name__}") from error

    def _send(self, method: str, url: str, *, content: bytes | Iterator[bytes], headers: dict[str, str]) -> httpx.Response:
        return self._http.request(method, url, content=content, headers=headers)

    def _retry(self, what: str, once: Callable[[], Result], *, until: float, outlive_stop: bool) -> Result:
        """Runs `once` until it succeeds; pauses double, with jitter, and honour Retry-After."""
        pause = self._first_pause_s
        while True:
            try:
                return once()
            except httpx.InvalidURL as error:
                raise Refused(0, "bad_url", f"{what}: not a valid address") from error
            except (_Retry, httpx.HTTPError) as error:
                asked = error.after_s if isinstance(error, _Retry) else None
                wait = max(pause * random.uniform(0.5, 1.0), asked or 0.0)
                words = str(error) or type(error).__name__
                if time.monotonic() + wait > until or (self._stop.is_set() and not outlive_stop):
                    raise Unreachable(f"{what}: {words}") from error
                log.info("trying again", extra={"call": what, "cause": words, "pause_s": round(wait, 2)})
                self._pause(wait, outlive_stop)
                pause = min(pause * 2, LONGEST_PAUSE_S)

    def _pause(self, seconds: float, outlive_stop: bool) -> None:
        if outlive_stop:
            threading.Event().wait(seconds)
        else:
            self._stop.wait(seconds)


class _Retry(Exception):
    def __init__(self, words: str, after_s: float | None = None) -> None:
        super().__init__(words)
        self.after_s = after_s


class _StorageError(BaseModel):
    statusCode: int  # noqa: N815 - their spelling
    error: str = "storage"
    message: str = ""


def _raise_for(answer: httpx.Response) -> None:
    """The one place that sorts status codes."""
    status = answer.status_code
    if 200 <= status < 300:
        return
    try:
        body = ErrorBody.model_validate_json(answer.content)
    except ValidationError:
        status, body = _storage_error(status, answer.content)
    if status == 409:
        raise LeaseLost(body.detail)
    if status == 401:
        raise Unauthorized(status, body.code, body.detail)
    if 400 <= status < 500 and status not in (408, 429):
        raise Refused(status, body.code, body.detail)
    raise _Retry(body.detail, _retry_after(answer.headers.get("retry-after")))


def _storage_error(status: int, content: bytes) -> tuple[int, ErrorBody]:
    """What an answer means that is none of our server's. Supabase Storage sends 400 for nearly everything and the meaning in the body."""
    try:
        found = _StorageError.model_validate_json(content)
    except ValidationError:
        return status, ErrorBody(code=f"http_{status}", detail=f"status {status}")
    meaning = found.statusCode if status == 400 else status
    # A store knows no leases: its conflicts and locks pass.
    return 503 if meaning in (409, 423) else meaning, ErrorBody(code=found.error, detail=found.message)


def _retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header (a number or a date), at most ten minutes."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return min(max(seconds, 0.0), 600.0)


def _blocks(path: Path, check: Callable[[], None]) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            check()
            yield block
