"""What holds for every answer and every request: the shape of errors, security headers, the size of bodies."""

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gridx.core.errors import GridxError, Invalid, Unavailable
from gridx.core.streams import too_large
from gridx.core.text import NUL_PATTERN
from gridx_protocol import ErrorBody

MAX_JSON_BYTES: Final = 1 << 20

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data:"
)

ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"model": ErrorBody, "description": "Refused: the detail says what to do next"},
    "5XX": {"model": ErrorBody, "description": "The server's own trouble; 503 names in Retry-After when to try again"},
}
"""What every route may answer, for the API's description."""

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_NOT_A_NUMBER = re.compile(rb"NaN|Infinity")
_MOST_FIELDS_NAMED = 20

_log = structlog.get_logger()


def install_error_handlers(app: FastAPI) -> None:
    """Every error leaves as `{"code", "detail"}`. What was sent is never repeated: it may be a password."""
    app.add_exception_handler(GridxError, _on_gridx_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_unexpected)


class HttpGuard:
    """ASGI middleware: security headers on every answer, a cap on every body, and an answer even when the code below fails.

    Bodies are read whole before the application sees them, up to `max_bytes`, and refused when they hold NaN or Infinity. Not so on the
    paths of `streaming`, whose routes read their bodies themselves once they know the caller: `/datasets` is that path alone, `/files/`
    everything below it. A path maps to the largest Content-Length it lets through, in bytes, or to None where only the route knows.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        streaming: Mapping[str, int | None] | None = None,
        max_bytes: int = MAX_JSON_BYTES,
        content_security_policy: str = CONTENT_SECURITY_POLICY,
        is_https: bool = False,
    ) -> None:
        self._app = app
        self._streaming = dict(streaming or {})
        self._max_bytes = max_bytes
        self._headers = {**_HEADERS, "Content-Security-Policy": content_security_policy}
        if is_https:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                self._add_headers(message)
            await send(message)

        try:
            await self._app(scope, await self._guarded(scope, receive), send_with_headers)
        except GridxError as error:
            await _error_response(error)(scope, receive, send_with_headers)
        except Exception as error:
            if has_begun:
                raise
            await _unexpected(scope["method"], scope["path"], error)(scope, receive, send_with_headers)

    async def _guarded(self, scope: Scope, receive: Receive) -> Receive:
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        size = int(announced) if announced.isdecimal() and len(announced) <= 18 else None
        is_streaming, limit = self._rule(scope["path"])
        if size is not None and limit is not None and size > limit:
            raise too_large(limit)
        if is_streaming:
            return receive
        if size == 0 or (size is None and "transfer-encoding" not in headers):
            return receive
        return await _read_whole(receive, self._max_bytes)

    def _rule(self, path: str) -> tuple[bool, int | None]:
        """Whether the route reads the body itself, and how many announced bytes are let through."""
        for name, limit in self._streaming.items():
            if path == name or (name.endswith("/") and path.startswith(name)):
                return True, limit
        return False, self._max_bytes

    def _add_headers(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        if headers.get("content-type", "").startswith("application/json"):
            headers.setdefault("Cache-Control", "no-store")


async def _read_whole(receive: Receive, limit: int) -> Receive:
    body = bytearray()
    messages: list[Message] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            messages.append(message)
            break
        body += message.get("body", b"")
        if len(body) > limit:
            raise too_large(limit)
        if not message.get("more_body", False):
            messages.append({"type": "http.request", "body": bytes(body), "more_body": False})
            break
    if _NOT_A_NUMBER.search(body):
        _refuse_not_a_number(body)

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return replay


def _refuse_not_a_number(body: bytes | bytearray) -> None:
    def refuse(name: str) -> None:
        raise Invalid(f"the body holds {name}, which is not JSON; send null instead")

    try:
        json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        # No JSON at all: the route says so in its own words.
        return


def _on_gridx_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, GridxError)
    return _error_response(error)


def _on_invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _answer(422, "invalid", describe(error.errors()))


def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    code = status.name.lower()
    detail = str(error.detail)
    if detail == status.phrase:
        if status == HTTPStatus.NOT_FOUND:
            detail = f"there is no {request.method} {request.url.path}"
        elif status == HTTPStatus.METHOD_NOT_ALLOWED:
            detail = f"{request.url.path} does not understand {request.method}"
    return _answer(status, code, detail, error.headers)


def _on_unexpected(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, OSError):
        _log.error("storage unavailable", method=request.method, path=request.url.path, exc_info=error)
        return _error_response(Unavailable("the server's storage cannot be reached right now; try again in a few seconds"))
    return _unexpected(request.method, request.url.path, error)


def describe(errors: Sequence[Any]) -> str:
    """Pydantic's errors as one line, `field: message; field2: message`, without any value that was given."""
    parts = [f"{_field(error['loc'])}: {_message(error)}" for error in errors[:_MOST_FIELDS_NAMED]]
    if len(errors) > _MOST_FIELDS_NAMED:
        parts.append(f"and {len(errors) - _MOST_FIELDS_NAMED} more")
    return "; ".join(parts)


def _field(location: Sequence[str | int]) -> str:
    parts = [str(part)[:60] for part in location if part not in ("body", "query", "path", "header", "cookie")]
    return ".".join(parts).encode("utf-8", "replace").decode() or "body"


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "this is not JSON"
    if error["type"] == "string_pattern_mismatch" and error.get("ctx", {}).get("pattern") == NUL_PATTERN:
        return "must not contain a NUL character"
    message = str(error["msg"])
    if error["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _unexpected(method: str, path: str, error: Exception) -> JSONResponse:
    _log.error("request_failed", method=method, path=path, exc_info=error)
    return _answer(500, "internal", "something went wrong on the server; it is in its log")


def _error_response(error: GridxError) -> JSONResponse:
    return _answer(error.status, error.code, error.detail, error.headers)


def _answer(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    text = detail.encode("utf-8", "replace").decode()
    return JSONResponse({"code": code, "detail": text}, status_code=status, headers=dict(headers or {}))
