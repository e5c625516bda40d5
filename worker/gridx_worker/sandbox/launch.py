"""The agent's end of task/launcher.py: orders go to its standard input, answers come back beside the scripts' output."""

import contextlib
import json
import queue
import secrets
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from gridx_worker.sandbox.base import StopSwitch, Work
from gridx_worker.sandbox.output import BadOutput, missing

READY_S = 300.0
"""Importing PyTorch may take this long on a machine that has much else to do."""
WIPE_S = 15.0
TAKE_S = 60.0
"""So long may nothing come of a file that is taken."""
LAST_OUTPUT_S = 5.0
SECOND_BELT_S = 5.0
"""So much later than the agent's does the launcher's own timer end a script."""
_LONGEST_ANSWER = 65536


class LauncherEnded(Exception):
    """The launcher is gone, or does not answer."""


@dataclass(frozen=True)
class Ended:
    """How a script ended, as the launcher saw it."""

    code: int
    out_of_memory: bool
    out_of_time: bool
    has_outputs: bool
    """Whether something lies where files beside the model belong."""


class Parcel:
    """A file on its way from the thread that reads a launcher's output to the one that takes it, a few MB ahead at most."""

    def __init__(self) -> None:
        self._blocks: queue.Queue[bytes] = queue.Queue(maxsize=128)
        self._dropped = threading.Event()

    def put(self, data: bytes) -> None:
        while not self._dropped.is_set():
            with contextlib.suppress(queue.Full):
                self._blocks.put(data, timeout=1.0)
                return

    def read(self) -> bytes:
        """The next bytes. Raises LauncherEnded."""
        try:
            block = self._blocks.get(timeout=TAKE_S)
        except queue.Empty:
            raise LauncherEnded(f"the launcher sent nothing for {TAKE_S:.0f} s") from None
        if not block:
            raise LauncherEnded("the launcher ended before the whole file had come")
        return block

    def end(self) -> None:
        """Nothing comes after what was put."""
        self.put(b"")

    def drop(self) -> None:
        """Nobody reads on: what comes is let go."""
        self._dropped.set()


class Launcher:
    """One launcher at work. `send` writes to its standard input; whoever reads its output calls `on_output`, `on_answers` and `on_end`.

    One script at a time; only `stop_waiting` and the readers' calls may come from other threads.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._rest = b""
        self._token = b""
        self._held = b""
        self._listener: Callable[[bytes], None] | None = None
        self._output_ended = threading.Event()
        self._parcel: Parcel | None = None
        self._wiping = False
        self.last_words = b""
        """The end of what it said that was no answer: a traceback of its own."""

    def wait_until_ready(self) -> None:
        """Raises LauncherEnded."""
        self._expect("ready", READY_S)

    def run(self, work: Work, *, folder: str, inputs: str, packages: str | None, on_output: Callable[[bytes], None]) -> int:
        """Orders the script to start, after the last one's files are gone; its process id. Raises LauncherEnded."""
        self.settle()
        token = f"\x00{secrets.token_hex(16)}\n"
        self._token, self._held, self._listener = token.encode(), b"", on_output
        self._output_ended.clear()
        order = {
            "do": "run", "folder": folder, "input": inputs, "arguments": list(work.arguments), "environment": dict(work.environment),
            "packages": packages, "seconds": max(work.seconds_left, 0.0) + SECOND_BELT_S, "token": token,
        }  # fmt: skip
        self._order(order)
        return int(self._expect("started", READY_S)["pid"])

    def wait(self, seconds: float) -> Ended | None:
        """How the script ended; None when the time is over or `stop_waiting` was called. Raises LauncherEnded."""
        try:
            answer = self._answers.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        if answer is None:
            raise LauncherEnded(self._why())
        if answer.get("event") != "ended":
            return None
        self._output_ended.wait(LAST_OUTPUT_S)
        return Ended(int(answer["code"]), bool(answer["out_of_memory"]), bool(answer["out_of_time"]), bool(answer["outputs"]))

    def stop_waiting(self) -> None:
        self._answers.put({"event": "stop"})

    @contextlib.contextmanager
    def taking(self, folder: str, name: str, most: int) -> Generator[tuple[int, Callable[[int], bytes]]]:
        """Has the launcher send folder/name: its size in bytes, and what reads it (at most `most` bytes come). Raises BadOutput when the
        script left no such file, LauncherEnded."""
        self._parcel = parcel = Parcel()
        try:
            self._order({"do": "take", "folder": folder, "name": name, "most": most})
            answer = self._expect("file", TAKE_S)
            if answer.get("problem") == "missing":
                raise missing(name)
            if "size" not in answer:
                raise BadOutput(f"{name} is not a regular file that can be read")
            left = size = int(answer["size"])

            def read(_count: int) -> bytes:
                nonlocal left
                block = parcel.read() if left > 0 else b""
                left -= len(block)
                return block

            yield size, read
        finally:
            self._parcel = None
            parcel.drop()

    def wipe(self) -> None:
        """Orders the script's files away; `settle` looks at the answer. Raises LauncherEnded."""
        self._order({"do": "wipe"})
        self._wiping = True

    def settle(self) -> None:
        """Waits until the wiping that was ordered is done. Raises LauncherEnded when something stayed."""
        if self._wiping:
            if not self._expect("wiped", WIPE_S)["well"]:
                raise LauncherEnded("a script's files could not be removed")
            self._wiping = False

    def on_output(self, data: bytes) -> None:
        """The scripts' output, or a file that is taken, as it comes. What comes at other times is nobody's."""
        if (parcel := self._parcel) is not None:
            parcel.put(data)
            return
        listener = self._listener
        if listener is None:
            return
        data = self._held + data
        end = data.find(self._token)
        if end >= 0:
            self._held, self._listener = b"", None
            if end:
                listener(data[:end])
            self._output_ended.set()
            return
        # A part of the token may be at the end, and its rest on the way.
        begin = data.rfind(b"\x00", max(len(data) - len(self._token), 0))
        keep = len(data) - begin if begin >= 0 and self._token.startswith(data[begin:]) else 0
        self._held = data[len(data) - keep :]
        if keep < len(data):
            listener(data[: len(data) - keep])

    def on_answers(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_LONGEST_ANSWER:]
        for line in lines:
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict) and "event" in answer:
                    self._answers.put(answer)
                    continue
            self.last_words = (self.last_words + line + b"\n")[-2000:]

    def on_end(self) -> None:
        """Nothing will come any more."""
        self._output_ended.set()
        self._answers.put(None)
        if (parcel := self._parcel) is not None:
            parcel.end()

    def _order(self, order: dict[str, Any]) -> None:
        try:
            self._send(json.dumps(order).encode() + b"\n")
        except OSError as error:
            raise LauncherEnded(self._why()) from error

    def _expect(self, event: str, seconds: float) -> dict[str, Any]:
        while True:
            try:
                answer = self._answers.get(timeout=seconds)
            except queue.Empty:
                raise LauncherEnded(f"the launcher did not answer within {seconds:.0f} s") from None
            if answer is None:
                raise LauncherEnded(self._why())
            if answer["event"] == event:
                return answer

    def _why(self) -> str:
        words = self.last_words.decode(errors="replace").strip()
        return f"the launcher ended: {words[-500:]}" if words else "the launcher ended"


def follow(launcher: Launcher, work: Work, stop: StopSwitch) -> Ended | None:
    """Waits for the script's end, the attempt's deadline or the order to stop, whichever is first. Raises LauncherEnded."""
    stop.on_throw(launcher.stop_waiting)
    while True:
        ended = launcher.wait(work.seconds_left)
        if ended is not None or stop.reason is not None or work.seconds_left <= 0:
            return ended
