"""Signed links, and the /files routes they lead to."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request

from gridx.core.streams import UploadBroken, stream_to_file
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock


@pytest.fixture
def stored(store: LocalStore, tmp_path: Path) -> str:
    """The key of an object of 100 bytes."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    store.put_file("jobs/1/model.pth", path)
    return "jobs/1/model.pth"


def altered(url: str, **changes: str | None) -> str:
    parts = urlsplit(url)
    query: dict[str, Any] = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **changes}
    return f"{parts.path}?{urlencode({name: value for name, value in query.items() if value is not None})}"


def temporary_files(store: LocalStore) -> list[Path]:
    return list((store.root / ".tmp").iterdir())


class TestDownload:
    def test_serves_the_bytes_as_a_harmless_attachment(self, api: TestClient, store: LocalStore, stored: str) -> None:
        answer = api.get(store.signed_get(stored, 60, "final_model.pth"))
        assert (answer.status_code, answer.content) == (200, bytes(range(100)))
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == 'attachment; filename="final_model.pth"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"

    def test_links_are_relative_and_absolute_only_with_a_public_url(self, store: LocalStore, stored: str, tmp_path: Path) -> None:
        assert store.signed_get(stored, 60, "x").startswith("/files/jobs/1/model.pth?")
        public = LocalStore(tmp_path / "other", SECRET, public_url="https://gridx.example/")
        assert public.signed_get(stored, 60, "x").startswith("https://gridx.example/files/jobs/1/model.pth?")

    @pytest.mark.parametrize(
        ("header", "status", "content"),
        [("bytes=10-19", 206, bytes(range(10, 20))), ("bytes=-5", 206, bytes(range(95, 100))), ("bytes=200-", 416, None)],
    )
    def test_a_range_is_understood(
        self, api: TestClient, store: LocalStore, stored: str, header: str, status: int, content: bytes | None
    ) -> None:
        answer = api.get(store.signed_get(stored, 60, "x"), headers={"Range": header})
        assert answer.status_code == status
        if content is not None:
            assert answer.content == content

    def test_head_tells_the_size(self, api: TestClient, store: LocalStore, stored: str) -> None:
        answer = api.head(store.signed_get(stored, 60, "x"))
        assert (answer.status_code, answer.headers["content-length"]) == (200, "100")

    def test_an_expired_link_is_refused_in_words(self, api: TestClient, store: LocalStore, stored: str, clock: FakeClock) -> None:
        url = store.signed_get(stored, 60, "x")
        clock.advance(59)
        assert api.get(url).status_code == 200
        clock.advance(1)
        answer = api.get(url)
        assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")
        assert "expired" in answer.json()["detail"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"expires": "99999999999"},
            {"max": "5"},
            {"name": "other.html"},
            {"sig": "0" * 64},
            {"sig": ""},
            {"sig": "ä"},
            {"method": "PUT"},
            {"method": "DELETE"},
        ],
    )
    def test_an_altered_link_is_refused(self, api: TestClient, store: LocalStore, stored: str, changes: dict[str, str]) -> None:
        answer = api.get(altered(store.signed_get(stored, 60, "x"), **changes))
        assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")

    @pytest.mark.parametrize("missing", ["sig", "expires", "method"])
    def test_a_link_without_a_part_is_malformed(self, api: TestClient, store: LocalStore, stored: str, missing: str) -> None:
        assert api.get(altered(store.signed_get(stored, 60, "x"), **{missing: None})).status_code == 422

    @pytest.mark.parametrize(
        "path",
        [
            "/files/jobs/1/other.pth",
            "/files/jobs/1/model.pth/",
            "/files/jobs/1/%2e%2e/1/model.pth",
            "/files/jobs/1/%2e%2e%2f1/model.pth",
            "/files/",
        ],
    )
    def test_for_another_path_it_is_refused(self, api: TestClient, store: LocalStore, stored: str, path: str) -> None:
        query = store.signed_get(stored, 60, "x").partition("?")[2]
        assert api.get(f"{path}?{query}").status_code in (403, 404)

    def test_signed_by_another_server_it_is_refused(self, api: TestClient, stored: str, tmp_path: Path, clock: FakeClock) -> None:
        stranger = LocalStore(tmp_path / "other", "another secret", clock=clock)
        assert api.get(stranger.signed_get(stored, 60, "x")).status_code == 403

    def test_an_object_that_is_gone_is_not_found(self, api: TestClient, store: LocalStore, stored: str) -> None:
        url = store.signed_get(stored, 60, "x")
        store.delete(stored)
        assert api.get(url).status_code == 404

    @pytest.mark.parametrize("name", ['a"; filename=evil.html', "ä ö\u202e.csv", "a\r\nSet-Cookie: x=y"])
    def test_a_hostile_file_name_stays_inside_its_header(self, api: TestClient, store: LocalStore, stored: str, name: str) -> None:
        answer = api.get(store.signed_get(stored, 60, name))
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith("attachment; filename*=")
        assert "set-cookie" not in answer.headers


class TestUpload:
    def test_stores_the_body(self, api: TestClient, store: LocalStore) -> None:
        url, headers = store.signed_put("jobs/1/upload", 60, 1000)
        answer = api.put(url, content=b"x" * 1000, headers=headers)
        assert answer.status_code == 204
        with store.open("jobs/1/upload") as stream:
            assert stream.read() == b"x" * 1000
        assert temporary_files(store) == []

    def test_more_than_a_json_body_may_hold_is_fine(self, api: TestClient, store: LocalStore) -> None:
        url, headers = store.signed_put("jobs/1/upload", 60, 10_000_000)
        assert api.put(url, content=b"x" * 5_000_000, headers=headers).status_code == 204

    @pytest.mark.parametrize("is_announced", [True, False])
    def test_too_much_is_refused_and_leaves_nothing(self, api: TestClient, store: LocalStore, is_announced: bool) -> None:
        url, headers = store.signed_put("jobs/1/upload", 60, 1000)
        body: Any = b"x" * 1001 if is_announced else iter([b"x" * 500] * 3)
        answer = api.put(url, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert store.stat("jobs/1/upload") is None
        assert temporary_files(store) == []

    @pytest.mark.parametrize("changes", [{"max": "100000"}, {"expires": "99999999999"}, {"method": "GET"}, {"sig": "f" * 64}])
    def test_an_altered_link_is_refused_before_the_body_is_read(self, api: TestClient, store: LocalStore, changes: dict[str, str]) -> None:
        url, headers = store.signed_put("jobs/1/upload", 60, 1000)
        pulled: list[int] = []

        def body() -> Any:
            for number in range(3):
                pulled.append(number)
                yield b"x"

        answer = api.put(altered(url, **changes), content=body(), headers=headers)
        assert answer.status_code == 403
        assert store.stat("jobs/1/upload") is None

    def test_a_download_link_uploads_nothing(self, api: TestClient, store: LocalStore, stored: str) -> None:
        assert api.put(store.signed_get(stored, 60, "x"), content=b"evil").status_code == 403

    def test_an_upload_link_downloads_nothing(self, api: TestClient, store: LocalStore, stored: str) -> None:
        url, _ = store.signed_put(stored, 60, 10)
        assert api.get(url).status_code == 403


def request_of(blocks: list[bytes | None]) -> Request:
    """A request whose body arrives in `blocks`; None is the sender going away."""

    async def receive() -> dict[str, Any]:
        block = blocks.pop(0)
        if block is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": block, "more_body": bool(blocks)}

    return Request({"type": "http", "method": "PUT", "headers": [], "path": "/", "query_string": b""}, receive)


class TestStreamToFile:
    def test_counts_and_hashes(self, tmp_path: Path) -> None:
        import hashlib

        blocks: list[bytes | None] = [b"a" * 700_000, b"b" * 700_000, b""]
        size, digest = anyio.run(stream_to_file, request_of(blocks), tmp_path / "body", 1_400_000)
        expected = b"a" * 700_000 + b"b" * 700_000
        assert (size, digest) == (len(expected), hashlib.sha256(expected).hexdigest())
        assert (tmp_path / "body").read_bytes() == expected

    def test_a_broken_off_upload_leaves_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(UploadBroken):
            anyio.run(stream_to_file, request_of([b"a" * 2_000_000, None]), tmp_path / "body", 10_000_000)
        assert list(tmp_path.iterdir()) == []


class TestSweepTemporary:
    def test_only_old_leftovers_go(self, store: LocalStore, clock: FakeClock) -> None:
        import os

        old, fresh = store.temporary(), store.temporary()
        for path, age_s in ((old, 7200), (fresh, 10)):
            path.write_bytes(b"x")
            at = clock.now().timestamp() - age_s
            os.utime(path, (at, at))
        from datetime import timedelta

        assert store.sweep_temporary(clock.now() - timedelta(hours=1)) == 1
        assert temporary_files(store) == [fresh]
