"""The doctor on real machines: this one, and ones that lack something."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gridx_worker import cli
from gridx_worker.doctor import report
from gridx_worker.doctor.report import Check, Findings
from tests.worker.fakes import FakeServer


class LateServer(BaseHTTPRequestHandler):
    """A server whose clock stands at the beginning of 2020."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(1577836800)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def late_server() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), LateServer)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def doctor(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--name", "a", *arguments])
    return int(ended.value.code or 0)


class TestDoctor:
    @pytest.mark.docker
    def test_a_sound_machine(self, sandbox_image: str, server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        server.routes["/health"] = lambda call: (200, {"status": "ok"})
        options = ["--state-dir", str(tmp_path), "--image", sandbox_image, "--memory-mb", "800"]
        code = doctor("--server", server.url, *options)
        said = capsys.readouterr().err
        assert code == 0, said
        for words in ("Docker enforces all limits", "the sandbox holds", "samples/s", "this machine can be lent"):
            assert words in said, said
        assert re.search(r"clock: [+-][01] s", said), said  # the server tells its time in whole seconds
        found = report.load(tmp_path / "a")
        assert found is not None
        assert found.score is not None
        assert found.score > 100
        assert found.age_s < 60
        assert not any(check.problem for check in found.checks)

    @pytest.mark.long
    @pytest.mark.docker
    def test_a_machine_without_the_image_and_with_too_little_of_everything(
        self, late_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--image", "gridx-no-such-image", "--memory-mb", "99999999", "--cpus", "4096", "--gpu", "7"]
        assert doctor("--server", late_server, "--state-dir", str(tmp_path), *options) == 1
        said = capsys.readouterr().err
        for words in ("-> gridx-worker build-image", "-> offer less with --memory-mb", "-> offer fewer with --cpus", "does not know GPU 7"):
            assert words in said, said
        assert "ahead of the server's" in said
        assert "-> turn on time synchronisation" in said
        found = report.load(tmp_path / "a")
        assert found is not None
        assert found.score is None

    def test_no_docker_no_server(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        assert doctor("--server", "http://127.0.0.1:9", "--state-dir", str(tmp_path)) == 1
        said = capsys.readouterr().err
        assert "-> install Docker, start it" in said
        assert "-> is the address right" in said


class TestReport:
    def test_comes_back_as_it_was_cut_to_what_the_server_takes(self, tmp_path: Path) -> None:
        report.save(Findings([Check("disk", "p" * 9999, "f"), Check("n" * 999)], 12.5), tmp_path)
        found = report.load(tmp_path)
        assert found is not None
        assert (found.score, len(found.checks[0].problem or ""), len(found.checks[1].name)) == (12.5, 500, 100)

    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"at": "x"}', json.dumps({"at": 1, "checks": [{}], "score": 1})])
    def test_damaged(self, tmp_path: Path, content: str) -> None:
        (tmp_path / report.FILE).write_text(content)
        assert report.load(tmp_path) is None

    def test_never_ran(self, tmp_path: Path) -> None:
        assert report.load(tmp_path) is None
        assert report.written_at(tmp_path) == 0.0
