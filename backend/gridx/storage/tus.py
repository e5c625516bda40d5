"""Resumable uploads by TUS 1.0.0 (https://tus.io/protocols/resumable-upload), as Supabase Storage speaks it:
every part but the last has exactly 6 MiB, and `x-upsert` goes with every request, not only with the first."""

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

import httpx

PART_BYTES = 6 * 1024 * 1024
_VERSION = {"Tus-Resumable": "1.0.0"}
_TIMEOUT = httpx.Timeout(300.0, connect=10.0)
"""The answer to the last part comes only when the storage has put all of them together."""
_TRIES_WITHOUT_PROGRESS = 6
_BEGINNINGS = 3
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
Result = TypeVar("Result")


class UploadRefused(Exception):
    """The server will not take this upload, or cannot for now."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text[:200] or f"status {status}")
        self.status = status
        """0 when no answer came at all."""


class _Setback(Exception):
    def __init__(self, cause: UploadRefused) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Interrupted(_Setback):
    """Something may or may not have arrived; ask, and go on."""


class _Lost(_Setback):
    """The upload cannot be continued; it may be begun anew."""


@dataclass(frozen=True)
class TusClient:
    """`endpoint` takes new uploads; `headers` authorise and go with every request."""

    http: httpx.Client
    endpoint: str
    headers: Mapping[str, str]
    pause: Callable[[float], None] = field(default=time.sleep)

    def upload(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Upload a file, one part in memory at a time; after an interruption go on from where the server stands.

        Raises:
            UploadRefused: refused for good, or no progress in several tries.
        """
        for beginnings_left in reversed(range(_BEGINNINGS)):
            try:
                with path.open("rb") as file:
                    self._send(file, path.stat().st_size, metadata)
                return
            except _Lost as error:
                if not beginnings_left:
                    raise error.cause from None

    def _send(self, file: BinaryIO, size: int, metadata: Mapping[str, str]) -> None:
        url = self._patiently(lambda: self._create(size, metadata))
        offset, failures = 0, 0
        while offset < size:
            try:
                offset = self._send_part(url, file, offset)
                failures = 0
            except _Interrupted as error:
                failures += 1
                if failures >= _TRIES_WITHOUT_PROGRESS:
                    raise error.cause from None
                self.pause(_pause_s(failures))
                reached = self._patiently(lambda: self._offset(url))
                if reached >= size:
                    # All bytes are there, but whether they became the object is not known: only a whole upload proves that.
                    raise _Lost(error.cause) from None
                failures = failures if reached <= offset else 0
                offset = reached

    def _create(self, size: int, metadata: Mapping[str, str]) -> str:
        encoded = ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in metadata.items())
        answer = self._request("POST", self.endpoint, {"Upload-Length": str(size), "Upload-Metadata": encoded})
        upload_id = answer.headers.get("location", "").rstrip("/").rpartition("/")[2]
        if not upload_id:
            raise UploadRefused(answer.status_code, "the storage named no place to upload to")
        # Only the id is taken: behind a proxy the server gets its own scheme and host wrong, and the key must not follow it there.
        return f"{self.endpoint}/{upload_id}"

    def _send_part(self, url: str, file: BinaryIO, offset: int) -> int:
        file.seek(offset)
        part = file.read(PART_BYTES)
        if not part:
            raise UploadRefused(0, "the file became shorter while it was uploaded")
        headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
        return _upload_offset(self._request("PATCH", url, headers, part))

    def _offset(self, url: str) -> int:
        return _upload_offset(self._request("HEAD", url, {}))

    def _patiently(self, call: Callable[[], Result]) -> Result:
        for failures in range(1, _TRIES_WITHOUT_PROGRESS):
            try:
                return call()
            except _Interrupted:
                self.pause(_pause_s(failures))
        try:
            return call()
        except _Interrupted as error:
            raise error.cause from None

    def _request(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None) -> httpx.Response:
        try:
            answer = self.http.request(method, url, content=content, headers={**self.headers, **_VERSION, **headers}, timeout=_TIMEOUT)
        except httpx.HTTPError as error:
            raise _Interrupted(UploadRefused(0, str(error) or type(error).__name__)) from error
        status = answer.status_code
        if answer.is_success:
            return answer
        refused = UploadRefused(status, answer.text)
        if status >= 500 or status in (408, 409, 423, 429):  # 409: not the server's offset; 423: our last request still holds it
            raise _Interrupted(refused)
        if status in (404, 410) and method != "POST":
            raise _Lost(refused)
        raise refused


def _upload_offset(answer: httpx.Response) -> int:
    value = answer.headers.get("upload-offset", "")
    if not value.isdecimal():
        raise UploadRefused(answer.status_code, "the storage did not say how much it has")
    return int(value)


def _pause_s(failures: int) -> float:
    return min(_FIRST_PAUSE_S * 2 ** (failures - 1), _LONGEST_PAUSE_S)
