import threading
from typing import Any, cast

from gridx_protocol.messages import HeartbeatReply, HeartbeatRequest
from gridx_worker.client import Client
from gridx_worker.heartbeat import Heartbeat
from tests.worker.fakes import WAIT_S


class TestHeartbeat:
    def test_goes_on_after_an_unexpected_error(self) -> None:
        class Broken:
            """The first beat fails as it does when a new token cannot be saved."""

            def __init__(self) -> None:
                self.count = 0
                self.second = threading.Event()

            def heartbeat(self, request: HeartbeatRequest, *, until: float) -> HeartbeatReply:
                self.count += 1
                if self.count == 1:
                    raise OSError(28, "No space left on device")
                self.second.set()
                return HeartbeatReply(heartbeat_s=0.05, poll_s=0.05)

        client = Broken()
        ignore: Any = lambda *_: None  # noqa: E731
        heartbeat = Heartbeat(cast(Client, client), interval_s=0.05, intervals=ignore, on_unauthorized=ignore)
        heartbeat.start()
        assert client.second.wait(WAIT_S)
        heartbeat.stop()
