"""A TestClient without any thread: cheaper where a test makes thousands of calls, one after another."""

import asyncio
from collections.abc import Callable
from typing import Any, Self
from unittest.mock import patch

import httpx
from anyio import to_thread
from fastapi import FastAPI
from fastapi.testclient import TestClient


class DirectClient(TestClient):
    """While a call lasts, the application's event loop and what it would give to worker threads run in the caller's.

    To be used as a context, any number of times.
    """

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app)
        self._asgi = app
        self._transport = self._direct = _InLoop(app)

    def __enter__(self) -> Self:
        self._direct.loop = asyncio.new_event_loop()
        self._lifespan = self._asgi.router.lifespan_context(self._asgi)
        self._direct.loop.run_until_complete(self._lifespan.__aenter__())
        return self

    def __exit__(self, *args: object) -> None:
        self._direct.loop.run_until_complete(self._lifespan.__aexit__(None, None, None))
        self._direct.loop.close()


class _InLoop(httpx.BaseTransport):
    loop: asyncio.AbstractEventLoop

    def __init__(self, app: FastAPI) -> None:
        self._app = httpx.ASGITransport(app, client=("testclient", 50000))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        with patch.object(to_thread, "run_sync", _run_here):
            return self.loop.run_until_complete(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._app.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        content = b"".join([part async for part in answer.stream])
        return httpx.Response(answer.status_code, headers=answer.headers.raw, stream=httpx.ByteStream(content))


async def _run_here(work: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    return work(*arguments)
