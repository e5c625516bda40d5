"""Log lines of the agent: a message, then fields as name=value. Never tokens, links, code or rows."""

import json
import logging
import time

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


def set_up(level: str) -> None:
    """Logs to standard error. Raises ValueError for an unknown level."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "urllib3", "docker"):
        logging.getLogger(noisy).setLevel(logging.WARNING)  # they print links
