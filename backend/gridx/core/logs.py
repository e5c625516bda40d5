"""Structured logs: one event a line, ids as fields; JSON unless a person is watching. Tokens, links, code and rows never go in."""

import logging
import re
import sys

import structlog

_SIGNED_LINK = re.compile(r"(/files/[^\s?\"]*)\?[^\s\"]*")

_IDLE_CALLS = ("/agent/heartbeat", "/agent/request_task")


def configure_logs(level: str = "INFO") -> None:
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping().get(level.upper(), logging.INFO)),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("uvicorn.access").addFilter(_is_worth_a_line)
    logging.getLogger("uvicorn.access").addFilter(_StripLinks())


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Not so: idle agents' answered calls, a hundred a second with a thousand agents."""
    return not (isinstance(record.args, tuple) and len(record.args) == 5 and record.args[2] in _IDLE_CALLS and record.args[4] == 200)


class _StripLinks(logging.Filter):
    """Takes the signature out of file links before an access log line is written."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_SIGNED_LINK.sub(r"\1", part) if isinstance(part, str) else part for part in record.args)
        return True
