import queue
import threading
from typing import Any, cast

import pytest

from gridx_protocol.messages import HeartbeatReply, HeartbeatRequest
from gridx_worker.client import Client
from gridx_worker.heartbeat import SHORTEST_GAP_S, Heartbeat
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

    def test_rests_while_a_call_for_work_is_open_but_for_the_first_beat(self) -> None:
        class Counting:
            def __init__(self) -> None:
                self.beats: queue.SimpleQueue[int] = queue.SimpleQueue()

            def heartbeat(self, request: HeartbeatRequest, *, until: float) -> HeartbeatReply:
                self.beats.put(1)
                return HeartbeatReply(heartbeat_s=0.05, poll_s=0.05)

        client = Counting()
        ignore: Any = lambda *_: None  # noqa: E731
        heartbeat = Heartbeat(cast(Client, client), interval_s=0.05, intervals=ignore, on_unauthorized=ignore)
        with heartbeat.rest():
            heartbeat.start()
            client.beats.get(timeout=WAIT_S)
            for _ in range(3):
                heartbeat.beat_soon()  # each is a turn at least half a second after the last
                with pytest.raises(queue.Empty):
                    client.beats.get(timeout=SHORTEST_GAP_S)
        client.beats.get(timeout=WAIT_S)
        heartbeat.stop()
