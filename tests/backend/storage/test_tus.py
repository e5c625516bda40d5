"""Uploads in parts, and what interrupts them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from gridx.core.errors import TooLarge, Unavailable
from gridx.storage.supabase import SupabaseStore
from gridx.storage.tus import PART_BYTES, TusClient, UploadRefused
from tests.support.fake_supabase import KEY, FakeSupabase

DATA = bytes(range(256)) * (65 * 1024)  # 16.25 MiB: three parts
METADATA = {"bucketName": "gridx-files", "objectName": "large", "contentType": "application/octet-stream", "cacheControl": "0"}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def tus(fake: FakeSupabase, pauses: list[float]) -> TusClient:
    headers = {"authorization": f"Bearer {KEY}", "x-upsert": "true"}
    return TusClient(httpx.Client(), f"{fake.url}/storage/v1/upload/resumable", headers, pauses.append)


def stored(fake: FakeSupabase) -> bytes:
    return fake.buckets["gridx-files"].objects["large"].data


def counts(fake: FakeSupabase) -> dict[str, int]:
    methods = [line.split()[0] for line in fake.requests if "/upload/resumable" in line]
    return {method: methods.count(method) for method in ("POST", "PATCH", "HEAD")}


class TestPutFile:
    def test_a_large_file_goes_in_parts(self, supabase: SupabaseStore, fake: FakeSupabase, large: Path) -> None:
        supabase.put_file("large", large)
        assert stored(fake) == DATA
        assert counts(fake) == {"POST": 1, "PATCH": 3, "HEAD": 0}
        assert not large.exists()
        assert fake.buckets["gridx-files"].objects["large"].cache_control == "max-age=0"

    @pytest.mark.parametrize(("size", "parts"), [(PART_BYTES, 0), (PART_BYTES + 1, 2), (2 * PART_BYTES, 2)])
    def test_the_border_lies_at_one_part(self, supabase: SupabaseStore, fake: FakeSupabase, large: Path, size: int, parts: int) -> None:
        large.write_bytes(DATA[:size])
        supabase.put_file("large", large)
        assert stored(fake) == DATA[:size]
        assert counts(fake)["PATCH"] == parts

    def test_replaces_what_was_there(self, supabase: SupabaseStore, fake: FakeSupabase, large: Path) -> None:
        fake.put("gridx-files", "large", b"old", "", "")
        supabase.put_file("large", large)
        assert stored(fake) == DATA

    def test_too_large_is_said_before_a_byte_is_sent(self, supabase: SupabaseStore, fake: FakeSupabase, large: Path) -> None:
        fake.size_limit = len(DATA) - 1
        with pytest.raises(TooLarge):
            supabase.put_file("large", large)
        assert counts(fake)["PATCH"] == 0
        assert large.exists()


class TestInterruptions:
    @pytest.mark.parametrize(
        ("kind", "status", "keep"),
        [("refuse", 503, 0), ("refuse", 423, 0), ("refuse", 429, 0), ("drop", 0, 0), ("drop", 0, 1_000_000), ("forget", 0, 0)],
    )
    def test_goes_on_from_where_the_server_stands(
        self, tus: TusClient, fake: FakeSupabase, large: Path, kind: str, status: int, keep: int
    ) -> None:
        fake.fail("PATCH", kind, status=status, keep=keep)  # pyright: ignore[reportArgumentType]
        tus.upload(large, METADATA)
        assert stored(fake) == DATA
        assert counts(fake)["POST"] == 1
        assert counts(fake)["HEAD"] == 1

    @pytest.mark.parametrize("method", ["POST /upload", "HEAD"])
    def test_the_other_requests_are_tried_again(self, tus: TusClient, fake: FakeSupabase, large: Path, method: str) -> None:
        fake.fail("PATCH", "drop")
        fake.fail(method, "drop")
        fake.fail(method, status=500)
        tus.upload(large, METADATA)
        assert stored(fake) == DATA

    def test_an_unknown_end_means_all_over_again(self, tus: TusClient, fake: FakeSupabase, tmp_path: Path) -> None:
        path = tmp_path / "one-part"
        path.write_bytes(b"x")
        fake.fail("PATCH", "forget")
        tus.upload(path, METADATA)
        assert counts(fake) == {"POST": 2, "PATCH": 2, "HEAD": 1}

    def test_a_forgotten_upload_is_begun_anew(self, tus: TusClient, fake: FakeSupabase, large: Path) -> None:
        fake.fail("PATCH", "refuse", status=404)
        tus.upload(large, METADATA)
        assert stored(fake) == DATA
        assert counts(fake)["POST"] == 2

    def test_no_progress_ends_with_the_cause(self, tus: TusClient, fake: FakeSupabase, large: Path, pauses: list[float]) -> None:
        for _ in range(50):
            fake.fail("PATCH", "refuse", status=503)
        with pytest.raises(UploadRefused) as caught:
            tus.upload(large, METADATA)
        assert caught.value.status == 503
        assert counts(fake)["PATCH"] == 6
        assert pauses == sorted(pauses)

    def test_trouble_now_and_then_does_not_add_up(self, tus: TusClient, fake: FakeSupabase, tmp_path: Path) -> None:
        path = tmp_path / "many-parts"
        path.write_bytes(bytes(10 * PART_BYTES))
        for _ in range(9):
            fake.fail("PATCH", "drop", keep=PART_BYTES - 1)
        tus.upload(path, METADATA)
        assert len(stored(fake)) == 10 * PART_BYTES

    def test_a_refusal_is_not_tried_again(self, fake: FakeSupabase, large: Path) -> None:
        tus = TusClient(httpx.Client(), f"{fake.url}/storage/v1/upload/resumable", {"authorization": "Bearer wrong"})
        with pytest.raises(UploadRefused) as caught:
            tus.upload(large, METADATA)
        assert caught.value.status == 403
        assert counts(fake)["POST"] == 1

    def test_an_outage_is_503_and_leaves_the_file(
        self, supabase: SupabaseStore, fake: FakeSupabase, large: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(supabase, "_parts", replace(supabase._parts, pause=pauses.append))
        for _ in range(50):
            fake.fail("/upload/resumable", "refuse", status=503)
        with pytest.raises(Unavailable):
            supabase.put_file("large", large)
        assert large.exists()


MEMORY = """
import resource, sys
from pathlib import Path
from gridx.storage.supabase import SupabaseStore

url, key, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
store = SupabaseStore(url, key, "gridx-files")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
(folder / "small").write_bytes(b"x")
store.put_file("small", folder / "small")
before = peak()
store.put_file("large", folder / "large")
store.fetch("large", folder / "fetched")
with store.open("large") as stream:
    while stream.read(1 << 20):
        pass
print(peak() - before)
"""


def test_no_object_is_held_in_memory(fake: FakeSupabase, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(200 * 1024**2)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, fake.url, KEY, str(tmp_path)], capture_output=True, text=True, timeout=100, check=True
    )
    assert int(done.stdout) < 40, f"{done.stdout} MB more for an object of 200 MB"
    assert (tmp_path / "fetched").stat().st_size == 200 * 1024**2
