import hashlib
import threading
import time
from pathlib import Path

import pytest

from gridx_protocol.messages import FailRequest, Hardware, HeartbeatRequest, RegisterRequest, TaskRequest, UploadUrlRequest
from gridx_worker.client import Client, LeaseLost, Refused, TooLarge, Unauthorized, Unreachable
from tests.worker.fakes import DATA, Answer, Call, FakeServer

HARDWARE = Hardware(hostname="h", os="o", cores=1, ram_bytes=1, disk_free_bytes=1, python_version="3.11", isolation="process")


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def nothing() -> None: ...


class Sequence:
    """A route that answers with one after the other, then with the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def __call__(self, call: Call) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


IDLE: Answer = (200, {"task_id": None, "poll_after_s": 1.0})


class TestOutcomes:
    @pytest.mark.parametrize(
        "trouble",
        [
            (503, {"code": "down", "detail": "database down"}),
            (429, {"code": "slow", "detail": "slow down"}),
            (500, b"not even JSON"),
            (200, b"<html>a proxy's page</html>"),
            (0, b""),
        ],
        ids=["503", "429", "500", "bad body", "network"],
    )
    def test_trouble_is_tried_again(self, client: Client, server: FakeServer, trouble: Answer) -> None:
        server.routes["/agent/request_task"] = Sequence(trouble, trouble, IDLE)
        assert client.request_task(TaskRequest(), until=soon()).poll_after_s == 1.0
        assert len(server.of("/agent/request_task")) == 3

    def test_retry_after_is_honoured(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/request_task"] = Sequence((503, {}, {"retry-after": "1"}), IDLE)
        before = time.monotonic()
        client.request_task(TaskRequest(), until=soon())
        assert time.monotonic() - before >= 1.0

    def test_conflict_means_the_lease_is_lost(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/heartbeat"] = lambda call: (409, {"code": "lease_lost", "detail": "another agent has it"})
        with pytest.raises(LeaseLost, match="another agent has it"):
            client.heartbeat(HeartbeatRequest(task_id=1, lease_token="x"), until=soon())
        assert len(server.of("/agent/heartbeat")) == 1

    def test_other_refusals_are_final(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/fail_task"] = lambda call: (422, {"code": "invalid", "detail": "no"})
        with pytest.raises(Refused) as caught:
            client.fail(FailRequest(task_id=1, lease_token="x", kind="agent", reason="r"), until=soon())
        assert (caught.value.status, caught.value.code) == (422, "invalid")

    def test_given_up_at_the_deadline(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/request_task"] = lambda call: (503, {"code": "down", "detail": "database down"})
        with pytest.raises(Unreachable, match="database down"):
            client.request_task(TaskRequest(), until=soon(0.1))

    def test_stopping_ends_the_pauses_of_polling_but_not_those_of_reports(
        self, client: Client, server: FakeServer, stop: threading.Event
    ) -> None:
        stop.set()
        server.routes["/agent/request_task"] = lambda call: (503, {})
        with pytest.raises(Unreachable):
            client.request_task(TaskRequest(), until=soon(1000))
        server.routes["/agent/fail_task"] = Sequence((503, {}), (200, {}))
        client.fail(FailRequest(task_id=1, lease_token="x", kind="shutdown", reason="r"), until=soon())

    def test_name_taken_by_another_seller(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/register"] = lambda call: (409, {"code": "agent_taken", "detail": "agent-1 belongs to another seller"})
        with pytest.raises(Refused, match="another seller"):
            client.register("key", RegisterRequest(agent_id="agent-1", hardware=HARDWARE), until=soon())


class TestToken:
    def test_refused_token_is_renewed_once_and_the_call_repeated(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/request_task"] = lambda call: (
            IDLE if call.token == "token-2" else (401, {"code": "token", "detail": "unknown"})
        )

        def renew(refused: str) -> str:
            assert refused == "token-0"
            client.token = "token-2"
            return "token-2"

        client.renew = renew
        client.request_task(TaskRequest(), until=soon())
        assert [call.token for call in server.of("/agent/request_task")] == ["token-0", "token-2"]

    def test_without_another_token_it_is_final(self, client: Client, server: FakeServer) -> None:
        server.routes["/agent/request_task"] = lambda call: (401, {"code": "token", "detail": "revoked"})
        client.renew = lambda refused: None
        with pytest.raises(Unauthorized, match="revoked"):
            client.request_task(TaskRequest(), until=soon())


class TestDownload:
    def test_no_token_goes_with_it(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        client.download("/files/data", tmp_path / "data.csv", sha256=hashlib.sha256(DATA).hexdigest(), cap=100, until=soon(), check=nothing)
        assert (tmp_path / "data.csv").read_bytes() == DATA
        assert server.of("/files/data")[0].token is None

    def test_damaged_content_is_fetched_again(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        server.routes["/files/data"] = Sequence((200, b"cut"), (200, DATA))
        client.download("/files/data", tmp_path / "d", sha256=hashlib.sha256(DATA).hexdigest(), cap=100, until=soon(), check=nothing)
        assert (tmp_path / "d").read_bytes() == DATA

    def test_damaged_for_good_leaves_nothing(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        with pytest.raises(Unreachable):
            client.download("/files/data", tmp_path / "d", sha256="0" * 64, cap=100, until=soon(0.1), check=nothing)
        assert list(tmp_path.iterdir()) == []

    def test_too_large(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        with pytest.raises(TooLarge):
            client.download("/files/data", tmp_path / "d", sha256=None, cap=3, until=soon(), check=nothing)
        assert list(tmp_path.iterdir()) == []

    def test_missing_file_is_final(self, client: Client, tmp_path: Path) -> None:
        with pytest.raises(Refused):
            client.download("/files/none", tmp_path / "d", sha256=None, cap=3, until=soon(), check=nothing)


class TestUpload:
    def test_sends_bytes_and_the_given_headers_only(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        (tmp_path / "model.pth").write_bytes(b"x" * 3_000_000)
        client.upload(UploadUrlRequest(task_id=7, lease_token="l", size=3_000_000), tmp_path / "model.pth", until=soon(), check=nothing)
        call = server.of("/files/upload-7")[0]
        assert (call.method, len(call.body), call.headers["x-sign"], call.token) == ("PUT", 3_000_000, "1", None)

    def test_expired_link_is_asked_for_anew(self, client: Client, server: FakeServer, tmp_path: Path) -> None:
        (tmp_path / "m").write_bytes(b"x")
        server.routes["/files/upload-7"] = Sequence((403, {"code": "expired", "detail": "expired"}), (200, {}))
        client.upload(UploadUrlRequest(task_id=7, lease_token="l", size=1), tmp_path / "m", until=soon(), check=nothing)
        assert len(server.of("/agent/upload_url")) == 2
