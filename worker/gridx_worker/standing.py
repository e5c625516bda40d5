"""Tells the server what this machine takes and how it stands, and hears what it earned and why it has no work."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from gridx_protocol.messages import Profile, ProfileReply
from gridx_worker.client import CallFailed, Client
from gridx_worker.doctor import report

log = logging.getLogger(__name__)

EVERY_S = 60.0
PATIENCE_S = 5.0


class Standing:
    """`folder` is the agent's, where the doctor leaves its findings. Not thread-safe: the main loop's."""

    def __init__(self, client: Client, folder: Path, accepts: Literal["all", "recipes"], on_reply: Callable[[ProfileReply], None]) -> None:
        self._client, self._folder, self._on_reply = client, folder, on_reply
        self._accepts: Literal["all", "recipes"] = accepts
        self._told: tuple[str | None, float] | None = None
        self._told_at = 0.0
        self._said = ""

    def profile(self, paused: str | None = None) -> Profile:
        return Profile(accepts=self._accepts, paused=paused[:200] if paused else None, doctor=report.load(self._folder))

    def tell(self, paused: str | None, *, at_once: bool = False) -> None:
        """Tells it when something changed, `at_once`, or a minute has passed. A server that is away or too old is no trouble."""
        now, seen = time.monotonic(), (paused, report.written_at(self._folder))
        if seen == self._told and not at_once and now - self._told_at < EVERY_S:
            return
        self._told, self._told_at = seen, now
        try:
            reply = self._client.profile(self.profile(paused), until=now + PATIENCE_S)
        except CallFailed as error:
            log.debug("the server was not told how this machine stands", extra={"cause": str(error)})
            return
        words = reply.idle_because or ""
        if words != self._said:
            self._said = words
            if words:
                log.info("idle", extra={"because": words, "earned": reply.earned})
        self._on_reply(reply)
