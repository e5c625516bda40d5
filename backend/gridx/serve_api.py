"""`python -m gridx.serve_api`: the web process on its own. `gridx serve` starts it."""

import argparse
import gc
import resource
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from gridx.app import create_app
from gridx.core.logs import configure_logs
from gridx.core.settings import load_settings
from gridx.core.supervisor import die_with_supervisor
from gridx.jobs.board import Board
from gridx.jobs.line import Line


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--reload", action="store_true")
    arguments = parser.parse_args()
    die_with_supervisor()
    _raise_file_limit()
    settings = load_settings()
    configure_logs(settings.log_level)
    options: dict[str, Any] = {
        "host": arguments.host,
        "port": arguments.port,
        "log_level": settings.log_level.lower(),
        "timeout_graceful_shutdown": 10,
        "timeout_keep_alive": 75,
        "proxy_headers": True,
    }
    if arguments.reload:
        uvicorn.run("gridx.serve_api:make_app", factory=True, reload=True, **options)
        return
    app = make_app()
    _spare_the_collector()
    server = _Server(uvicorn.Config(app, **options), [app.state.line, app.state.rank_board])
    server.run()
    if not server.started:
        sys.exit(3)  # as uvicorn.run does


def _raise_file_limit() -> None:
    """As many connections as the system allows: each waiting agent holds one open, and the usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _spare_the_collector() -> None:
    """The application and a thousand calls held open are no garbage: to look through them at every turn costs more than many answers do."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


class _Server(uvicorn.Server):
    """A server whose end does not wait for agents that wait for work."""

    def __init__(self, config: uvicorn.Config, boards: Sequence[Board | Line]) -> None:
        super().__init__(config)
        self._boards = boards

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for board in self._boards:
            board.dismiss()
        super().handle_exit(sig, frame)


def make_app() -> FastAPI:
    """What uvicorn serves, also in the child process that `--reload` makes."""
    settings = load_settings()
    configure_logs(settings.log_level)
    return create_app(settings)


if __name__ == "__main__":
    main()
