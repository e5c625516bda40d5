"""The clients of idle.py, in a process of their own, and the application that is its limit."""

import asyncio
import json
import multiprocessing
import random
import re
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import psutil

WAIT_S = 25.0
WARM_UP_S = 35.0
"""Longer than a call is held, so that the calls are spread when the clock starts."""


class Crowd:
    """The agents, in a process of their own."""

    def __init__(self, port: int, tokens: list[str]) -> None:
        self._pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=run_crowd, args=(port, tokens, theirs), daemon=True)

    def __enter__(self) -> "Crowd":
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def warm_up(self) -> None:
        """Until every agent waits, and the calls are spread."""
        time.sleep(WARM_UP_S)

    def idle(self, server: psutil.Process, seconds: float) -> tuple[float, float]:
        """Cores that the server used meanwhile, and calls a second."""
        begun, used, calls = time.monotonic(), cpu_s(server), self._ask("calls")
        time.sleep(seconds)
        took = time.monotonic() - begun
        return (cpu_s(server) - used) / took, (self._ask("calls") - calls) / took

    def wait_for(self, count: int) -> list[tuple[int, float]]:
        """The subtasks that agents got, each with when (monotonic), once there are so many or nothing came for ten seconds."""
        found, end = list[tuple[int, float]](), time.monotonic() + 10
        while len(found) < count and time.monotonic() < end:
            time.sleep(0.5)
            found = self._ask("found")
        time.sleep(1.0)  # whatever is given a second time comes late
        return self._ask("found")

    def _ask(self, what: str) -> Any:
        self._pipe.send(what)
        return self._pipe.recv()


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def run_crowd(port: int, tokens: list[str], pipe: Connection) -> None:
    asyncio.run(_crowd(port, tokens, pipe))


async def _crowd(port: int, tokens: list[str], pipe: Connection) -> None:
    seen: dict[str, Any] = {"calls": 0, "found": []}
    tasks = [asyncio.create_task(_poll(port, token, seen)) for token in tokens]

    def answer() -> None:
        pipe.send(seen[pipe.recv()])

    asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
    await asyncio.gather(*tasks)


async def _poll(port: int, token: str, seen: dict[str, Any]) -> None:
    await asyncio.sleep(random.uniform(0, 8))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await _call(reader, writer, "heartbeat", token, {})  # the first one; then they rest while the call for work is open
    while True:
        reply = await _call(reader, writer, "request_task", token, {"wait_s": WAIT_S, "warm_job_ids": []})
        seen["calls"] += 1
        if reply["task_id"] is not None:
            seen["found"].append((reply["task_id"], time.monotonic()))
            return
        await asyncio.sleep(reply["poll_after_s"] * random.uniform(0.9, 1.1))


async def _call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, token: str, body: Any) -> dict[str, Any]:
    data = json.dumps(body).encode()
    head = f"POST /agent/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    answer = await reader.readexactly(int(found[1]) if found else 0)
    if b" 200 " not in head[:15]:
        sys.exit(f"{path}: {head[:40]!r} {answer[:200]!r}")
    return json.loads(answer)


def serve_bare(port: int) -> None:
    """An ASGI application that knows all the answers."""
    import uvicorn

    waiting, released = list["asyncio.Future[int]"](), iter(range(1, 10**6))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        reply: dict[str, Any] = {"heartbeat_s": 10.0, "poll_s": 1.0}
        if scope["path"] == "/release":
            for future in waiting[: int(scope["query_string"].partition(b"=")[2])]:
                future.set_result(next(released))
        elif scope["path"] == "/agent/request_task":
            future = asyncio.get_running_loop().create_future()
            waiting.append(future)
            done, _ = await asyncio.wait([future], timeout=WAIT_S)
            waiting.remove(future)
            reply = {"task_id": future.result() if done else None, "poll_after_s": 0.0, "filler": "x" * 1500 if done else ""}
        data = json.dumps(reply).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    uvicorn.run(app, port=port, log_level="warning", access_log=False, timeout_keep_alive=75)
