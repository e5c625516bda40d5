"""Fixtures of the agent's tests."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gridx_worker.client import Client
from gridx_worker.config import Config
from gridx_worker.dependencies import PipSettings
from gridx_worker.sandbox.base import ProviderLimits
from tests.worker.fakes import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.close()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def client(server: FakeServer, stop: threading.Event) -> Iterator[Client]:
    """A client that pauses for 20 ms at first, holding a token."""
    made = Client(server.url, stop=stop, first_pause_s=0.02)
    made.token = "token-0"
    yield made
    made.close()


@pytest.fixture
def make_config(server: FakeServer, tmp_path: Path) -> Callable[..., Config]:
    def make(**changes: Any) -> Config:
        values: dict[str, Any] = {
            "server": server.url,
            "key": "key-1",
            "name": "agent-1",
            "state_dir": tmp_path / "agent-1",
            "sandbox": "process",
            "python": None,
            "image": "none",
            "limits": ProviderLimits(),
            "heartbeat_s": 0.05,
            "poll_s": 0.05,
            "cache_bytes": 10**8,
            "warm_bytes": 10**9,
            "pip": PipSettings(),
        }
        return Config(**(values | changes))

    return make
