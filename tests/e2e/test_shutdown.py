"""The server ends when it is told to, also while agents wait for work."""

import signal
import time

import pytest

from tests.e2e.platform import AgentProcess, Platform

pytestmark = pytest.mark.slow


def test_waiting_agents_do_not_hold_the_server_up(platform: Platform) -> None:
    AgentProcess.start_new(platform, "ada")
    assert platform.server is not None
    begun = time.monotonic()
    platform.server.send_signal(signal.SIGTERM)
    platform.server.wait(20)
    assert time.monotonic() - begun < 8, "less than the patience with open calls"
