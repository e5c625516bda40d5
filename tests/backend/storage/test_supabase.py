"""What only a store behind a network has to fear, and what Supabase does in its own way."""

import logging
import threading
from pathlib import Path

import httpx
import pytest

from gridx.core.errors import ConfigurationError, TooLarge, Unavailable
from gridx.storage.base import ObjectMissing
from gridx.storage.supabase import BucketMissing, SupabaseStore
from tests.backend.storage.test_conformance import put, read
from tests.support.fake_supabase import KEY, FakeSupabase


class TestPutFile:
    def test_is_stored_as_no_particular_type_and_never_cached(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "a/page.html", b"<script>", tmp_path)
        stored = fake.buckets["gridx-files"].objects["a/page.html"]
        assert (stored.content_type, stored.cache_control) == ("application/octet-stream", "max-age=0")

    def test_a_failure_leaves_the_file_and_the_old_object(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "a", b"old", tmp_path)
        fake.fail("POST /object/gridx-files/a")
        with pytest.raises(Unavailable):
            put(supabase, "a", b"new", tmp_path)
        assert (tmp_path / "to-store").read_bytes() == b"new"
        assert read(supabase, "a") == b"old"

    def test_more_than_the_project_takes_is_too_large(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        fake.size_limit = 10
        with pytest.raises(TooLarge, match="limit"):
            put(supabase, "a", b"x" * 11, tmp_path)
        assert supabase.stat("a") is None

    def test_many_writers_of_one_key_leave_one_whole_object(self, supabase: SupabaseStore, tmp_path: Path) -> None:
        def work(number: int) -> None:
            path = tmp_path / f"file-{number}"
            path.write_bytes(bytes([number]) * 50_000)
            supabase.put_file("a/b", path)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(read(supabase, "a/b"))) == 1


class TestDownloads:
    def test_a_broken_download_is_unavailable_and_leaves_no_file(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "a", b"x" * 3_000_000, tmp_path)
        fake.fail("GET /object/sign", "forget")
        with pytest.raises(Unavailable):
            supabase.fetch("a", tmp_path / "local")
        assert not (tmp_path / "local").exists()
        fake.fail("GET /object/sign", "forget")
        with pytest.raises(Unavailable), supabase.open("a") as stream:
            stream.read()

    def test_gone_between_signing_and_reading_is_missing(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "a", b"x", tmp_path)
        fake.fail("GET /object/sign", status=404)
        with pytest.raises(Unavailable):  # a 404 that is not about the object
            read(supabase, "a")
        sign = supabase._signed_get
        supabase._signed_get = lambda *arguments: (sign(*arguments), supabase.delete("a"))[0]  # type: ignore[method-assign]
        with pytest.raises(ObjectMissing):
            read(supabase, "a")

    def test_reads_in_small_and_odd_pieces(self, supabase: SupabaseStore, tmp_path: Path) -> None:
        data = bytes(range(256)) * 10_000
        put(supabase, "a", data, tmp_path)
        with supabase.open("a") as stream:
            assert stream.read(7) + stream.read(1_500_001) + stream.read() == data


class TestLinks:
    def test_lead_straight_to_the_storage(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "jobs/1/model.pth", b"weights", tmp_path)
        url = supabase.signed_get("jobs/1/model.pth", 60, "final model ä.pth")
        assert url.startswith(f"{fake.url}/storage/v1/object/sign/gridx-files/jobs/1/model.pth?token=")
        assert KEY not in url
        answer = httpx.get(url)
        assert answer.content == b"weights"
        assert answer.headers["content-disposition"].startswith("attachment; filename=final model")

    def test_a_download_link_expires(self, supabase: SupabaseStore, fake: FakeSupabase, tmp_path: Path) -> None:
        put(supabase, "a", b"x", tmp_path)
        url = supabase.signed_get("a", 59.5, "x")
        fake.late_s = 59
        assert httpx.get(url).status_code == 200
        fake.late_s = 61
        answer = httpx.get(url)
        assert (answer.status_code, answer.json()["error"]) == (400, "InvalidJWT")

    def test_none_for_what_is_not_there(self, supabase: SupabaseStore) -> None:
        with pytest.raises(ObjectMissing):
            supabase.signed_get("a", 60, "x")

    def test_an_upload_link_takes_the_raw_file_again_and_again(self, supabase: SupabaseStore) -> None:
        url, headers = supabase.signed_put("jobs/1/upload", 60, 100)
        for data in (b"first", b"second"):
            assert httpx.put(url, content=data, headers=headers).status_code == 200
            assert read(supabase, "jobs/1/upload") == data
        again, _ = supabase.signed_put("jobs/1/upload", 60, 100)
        assert httpx.put(again, content=b"third", headers=headers).status_code == 200

    @pytest.mark.parametrize("change", ["path", "token", "method"])
    def test_an_upload_link_is_good_for_one_path_only(self, supabase: SupabaseStore, change: str, tmp_path: Path) -> None:
        put(supabase, "other", b"mine", tmp_path)
        url, _ = supabase.signed_put("upload", 60, 100)
        if change == "method":
            assert httpx.get(url.replace("/upload/sign/gridx-files/upload", "/sign/gridx-files/other")).status_code == 400
            return
        url = url.replace("gridx-files/upload", "gridx-files/other") if change == "path" else url[:-3] + "xxx"
        answer = httpx.put(url, content=b"evil")
        assert (answer.status_code, answer.json()["statusCode"]) == (400, "400")
        assert read(supabase, "other") == b"mine"

    def test_addresses_of_links_are_not_logged(self, supabase: SupabaseStore, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            put(supabase, "a", b"x", tmp_path)
            read(supabase, "a")
        assert "token=" not in caplog.text
        assert KEY not in caplog.text


class TestErrors:
    @pytest.mark.parametrize("status", [429, 500, 503, 544])
    def test_trouble_of_the_storage_is_503(self, supabase: SupabaseStore, fake: FakeSupabase, status: int) -> None:
        fake.fail("GET /object/info", status=status)
        with pytest.raises(Unavailable) as caught:
            supabase.stat("a")
        assert caught.value.status == 503

    def test_a_lost_connection_is_503(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        for _ in range(5):
            fake.fail("GET /object/info", "drop")
        with pytest.raises(Unavailable):
            supabase.stat("a")

    def test_no_server_is_503(self, tmp_path: Path) -> None:
        with FakeSupabase() as fake:
            url = fake.url
        store = SupabaseStore(url, KEY, "gridx-files")
        with pytest.raises(Unavailable):
            list(store.list(""))
        path = tmp_path / "large"
        path.write_bytes(b"x")
        with pytest.raises(Unavailable):
            store.put_file("a", path)
        store.close()

    def test_a_wrong_key_is_said_to_be_the_operators(self, fake: FakeSupabase) -> None:
        store = SupabaseStore(fake.url, "wrong", "gridx-files")
        with pytest.raises(Unavailable, match="SUPABASE_SERVICE_ROLE_KEY"):
            store.stat("a")
        store.close()

    def test_a_missing_bucket_is_no_missing_object(self, fake: FakeSupabase, tmp_path: Path) -> None:
        store = SupabaseStore(fake.url, KEY, "other")
        for call in (
            lambda: store.stat("a"),
            lambda: read(store, "a"),
            lambda: put(store, "a", b"x", tmp_path),
            lambda: list(store.list("")),
        ):
            with pytest.raises(BucketMissing, match="gridx doctor") as caught:
                call()
            assert not isinstance(caught.value, ObjectMissing)
        store.close()


class TestList:
    def test_goes_through_all_pages_while_objects_are_deleted(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        for number in range(2500):
            fake.put("gridx-files", f"jobs/{number}/x", b"x", "", "")
        seen = 0
        for info in supabase.list("jobs/"):
            supabase.delete(info.key) if seen < 1100 else None
            seen += 1
        assert seen == 2500
        assert fake.requests.count("POST /object/list-v2/gridx-files") == 3

    def test_what_others_left_in_the_bucket_is_not_ours(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        fake.put("gridx-files", "jobs/.emptyFolderPlaceholder", b"", "", "")
        fake.put("gridx-files", "jobs/my holiday.png", b"", "", "")
        assert list(supabase.list("jobs/")) == []


class TestBucket:
    def test_is_made_once_and_private(self, fake: FakeSupabase) -> None:
        store = SupabaseStore(fake.url, KEY, "new")
        assert store.make_bucket()
        assert not store.make_bucket()
        assert not fake.buckets["new"].public
        store.check_bucket(10**12)
        store.close()

    def test_a_public_one_is_refused(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        fake.buckets["gridx-files"].public = True
        with pytest.raises(ConfigurationError, match="public"):
            supabase.check_bucket(1)

    def test_one_that_takes_too_little_is_refused(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        fake.buckets["gridx-files"].file_size_limit = 100
        supabase.check_bucket(100)
        with pytest.raises(ConfigurationError, match="GRIDX_MAX_UPDATE_BYTES"):
            supabase.check_bucket(101)

    def test_one_for_pictures_is_refused(self, supabase: SupabaseStore, fake: FakeSupabase) -> None:
        fake.buckets["gridx-files"].allowed_mime_types = ["image/*"]
        with pytest.raises(ConfigurationError, match="octet-stream"):
            supabase.check_bucket(1)
