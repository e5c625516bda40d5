"""What `gridx orchestrator` and `python -m gridx.orchestrator` run."""

import asyncio
import signal
import threading
from collections.abc import Callable

import typer

from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.orchestrator import platform, standalone
from gridx.orchestrator.room import Room

DEFAULT_PORT = 50051


def run_standalone(settings: Settings, world_size: int, host: str, port: int | None, master_port: int, *, dashboard: bool) -> int:
    """Serve one group until its training ends; the exit code."""
    port = (settings.orchestrator_port or DEFAULT_PORT) if port is None else port
    room = Room(world_size, master=("127.0.0.1", master_port))
    if not dashboard:
        typer.echo(f"waiting for {world_size} workers on {host}:{port}: python -m gridx_worker.ddp --orchestrator {host}:{port} -- COMMAND")
    try:
        code = asyncio.run(standalone.run(room, host, port, dashboard=dashboard))
    except KeyboardInterrupt:
        return 130
    typer.echo("training has ended well" if code == 0 else f"training was stopped: {room.reason}")
    return code


def run_for_platform(settings: Settings, host: str, port: int | None, *, dashboard: bool) -> int:
    """Serve a platform's synchronous jobs until told to stop; the exit code. The database must be migrated."""
    port = (settings.orchestrator_port or DEFAULT_PORT) if port is None else port
    database = Database(settings.sqlalchemy_url)
    try:
        with stopped_by_signals() as stop:
            asyncio.run(platform.run(settings, database, host, port, stop, dashboard=dashboard))
    finally:
        database.dispose()
    return 0


class stopped_by_signals:  # noqa: N801 - used like a function
    """An event that SIGTERM and SIGINT set while the block runs."""

    def __enter__(self) -> threading.Event:
        stop = threading.Event()
        self._before: dict[int, Callable[..., object] | int | None] = {
            number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)
        }
        return stop

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
