"""Docker's SDK has traps; they are stepped around here."""

import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from gridx_worker.sandbox.base import SandboxUnavailable

log = logging.getLogger(__name__)


class BlockStream:
    """Blocks of bytes as a file that tarfile can read front to back."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = iter(blocks)
        self._rest = b""

    def read(self, count: int) -> bytes:
        while len(self._rest) < count:
            block = next(self._blocks, b"")
            if not block:
                break
            self._rest += block
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def pump(frames: Iterator[bytes], on_output: Callable[[bytes], None]) -> None:
    try:
        for frame in frames:
            on_output(frame)
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        log.info("the output ended early", extra={"cause": str(error)})


def wait_for(container: Container, ended: threading.Event, wake: threading.Event) -> None:
    """Docker's wait() gives up in two ways although the container runs on; only its end, or its being gone, ends this."""
    while True:
        try:
            container.wait(timeout=3600)
            break
        except NotFound:
            break
        except (APIError, requests.RequestException):
            if wake.wait(1.0):
                return
    ended.set()
    wake.set()


def forgiving(action: Callable[[], Any]) -> None:
    """Cleaning up: what is gone already is fine, what fails is left to the reaper."""
    try:
        action()
    except NotFound:
        pass
    except (DockerException, requests.RequestException) as error:
        log.info("Docker refused to clean up; the reaper tries again", extra={"cause": str(error)[:300]})


@contextmanager
def docker_trouble() -> Generator[None]:
    try:
        yield
    except (DockerException, requests.RequestException) as error:
        raise SandboxUnavailable(f"Docker failed: {str(error)[:500]}") from error
