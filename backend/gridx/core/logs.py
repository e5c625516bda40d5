"""Structured logs: one event a line, ids as fields; JSON unless a person is watching. Tokens, links, code and rows never go in."""

import logging
import re
import sys

import structlog

_SIGNED_LINK = re.compile(r"(/files/[^\s?\"]*)\?[^\s\"]*")


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
    logging.getLogger("uvicorn.access").addFilter(_StripLinks())


class _StripLinks(logging.Filter):
    """Takes the signature out of file links before an access log line is written."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_SIGNED_LINK.sub(r"\1", part) if isinstance(part, str) else part for part in record.args)
        return True
