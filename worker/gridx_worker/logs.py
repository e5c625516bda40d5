"""Log lines of the agent: a message, then fields as name=value. Never tokens, links, code or rows."""

import json
import logging
import time

from rich.console import Console

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FieldFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z INFO attempt started task_id=7 job_id=3`"""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        line = super().formatMessage(record)
        fields = [f"{name}={json.dumps(value, default=str)}" for name, value in vars(record).items() if name not in _STANDARD]
        return " ".join([line, *fields])


class ConsoleHandler(logging.Handler):
    """Prints above what a console draws."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(self.format(record), markup=False, highlight=False, soft_wrap=True)


def set_up(level: str, console: Console | None = None) -> None:
    """Logs to standard error, which `console` is where one draws on it. Raises ValueError for an unknown level."""
    handler = ConsoleHandler(console) if console is not None and console.is_terminal else logging.StreamHandler()
    handler.setFormatter(FieldFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "urllib3", "docker"):
        logging.getLogger(noisy).setLevel(logging.WARNING)  # they print links
