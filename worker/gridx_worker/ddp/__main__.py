"""Take part in synchronous training without a platform: register at a standalone orchestrator, wait for the others, run the script.

python -m gridx_worker.ddp [--orchestrator 127.0.0.1:50051] [--name NAME] -- python train.py

The script finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in its environment, and what it reports with `gridx_task`
goes into the heartbeats. It runs as you, in the current folder: for your own code.
"""

import argparse
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import gridx_worker.task
from gridx_worker import logs
from gridx_worker.ddp.rendezvous import Beats, OutOfPatience, Place, Progress, Refused, Rendezvous, Stop
from gridx_worker.stream import OutputSplitter, read_point

log = logging.getLogger("gridx_worker.ddp")
LAST_WORDS_S = 5.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gridx_worker.ddp", description="One rank of synchronous training.")
    parser.add_argument("--orchestrator", default="127.0.0.1:50051", help="host:port of the orchestrator (default 127.0.0.1:50051)")
    parser.add_argument("--name", default=f"{socket.gethostname()}-{os.getpid()}", help="this worker's name")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for the orchestrator and for the other ranks")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command to run")
    given = parser.parse_args(arguments)
    command: list[str] = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("give the command to run after --")
    logs.set_up(os.environ.get("WORKER_LOG_LEVEL") or "INFO")
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    rendezvous = Rendezvous(given.orchestrator, worker_id=given.name)
    try:
        until = time.monotonic() + given.patience
        place = rendezvous.register(until=until, stop=stop)
        log.info("registered", extra={"rank": place.rank, "world_size": place.world_size})
        place = rendezvous.wait_for_all(place, until=until, stop=stop)
        return _train(rendezvous, place, command, stop)
    except (Refused, Stop, OutOfPatience) as error:
        log.error("training ended", extra={"cause": str(error)})
        return 1
    finally:
        rendezvous.close()


def _train(rendezvous: Rendezvous, place: Place, command: list[str], stop: threading.Event) -> int:
    progress = Progress()
    mark = secrets.token_hex(16)
    helper = str(Path(gridx_worker.task.__file__).parent)
    path = os.pathsep.join(part for part in (os.environ.get("PYTHONPATH", ""), helper) if part)
    environment = os.environ | place.environment() | {"GRIDX_MODE": "ddp", "GRIDX_MARK": mark, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    begun = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
    ended_by: list[str] = []

    def end(reason: str) -> None:
        ended_by.append(reason)
        process.kill()

    splitter = OutputSplitter(mark, on_text=_print, on_event=lambda event: note(progress, event))
    ender = threading.Thread(target=lambda: stop.wait() and end("told to stop"), daemon=True)
    ender.start()
    assert process.stdout is not None
    with Beats(rendezvous, progress, end):
        while block := os.read(process.stdout.fileno(), 65536):
            splitter.feed(block)
        splitter.close()
        code = process.wait()
        until = time.monotonic() + LAST_WORDS_S
        never = threading.Event()
        if code == 0 and not ended_by:
            rendezvous.leave(train_s=time.monotonic() - begun, progress=progress, until=until, stop=never)
            return 0
        if not ended_by or stop.is_set():
            rendezvous.abort(f"the script ended with code {code}", until=until, stop=never)
    log.error("training was stopped", extra={"cause": "; ".join(ended_by) or f"the script ended with code {code}"})
    return 1


def note(progress: Progress, event: dict[str, Any]) -> None:
    """Take a script's report into its rank's progress."""
    if event.get("event") != "report":
        return
    point = read_point(0, event)
    progress.epoch = point.epoch if point.epoch is not None else progress.epoch
    progress.loss = point.loss if point.loss is not None else progress.loss
    step = point.more.get("step")
    progress.step = int(step) if step is not None and step >= 0 else progress.step
    progress.samples_per_s = point.more.get("samples_per_s", progress.samples_per_s)


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
