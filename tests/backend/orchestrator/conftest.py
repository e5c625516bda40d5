"""A real gRPC server on a free port of loopback, with an event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

from gridx.orchestrator.server import Calls, make_server


@dataclass
class Served:
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """`serve(calls)` answers with these calls until the test ends."""
    ends: list[Callable[[], None]] = []

    def start(calls: Calls[Any], **options: Any) -> Served:
        ready: Future[Served] = Future()
        ending: list[asyncio.Event] = []

        async def run() -> None:
            try:
                server, port = make_server(calls, "127.0.0.1", 0, **options)
                await server.start()
            except BaseException as error:
                ready.set_exception(error)
                raise
            ending.append(asyncio.Event())
            ready.set_result(Served(port, asyncio.get_running_loop()))
            await ending[0].wait()
            await server.stop(None)

        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        served = ready.result(30)

        def end() -> None:
            served.loop.call_soon_threadsafe(ending[0].set)
            thread.join(30)

        ends.append(end)
        return served

    yield start
    for end in ends:
        end()
