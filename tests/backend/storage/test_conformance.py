"""What every object store must do."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gridx.storage.base import ObjectInfo, ObjectMissing, ObjectStore, check_key


def put(store: ObjectStore, key: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "to-store"
    path.write_bytes(data)
    store.put_file(key, path)


def read(store: ObjectStore, key: str) -> bytes:
    with store.open(key) as stream:
        return stream.read()


class TestPutFile:
    def test_the_bytes_can_be_read_and_the_file_is_gone(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "jobs/1/train.py", b"print(1)", tmp_path)
        assert read(any_store, "jobs/1/train.py") == b"print(1)"
        assert not (tmp_path / "to-store").exists()

    def test_replaces_what_was_there(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"old and long", tmp_path)
        put(any_store, "a/b", b"new", tmp_path)
        assert read(any_store, "a/b") == b"new"

    def test_a_reader_keeps_the_old_object_while_it_is_replaced(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"old", tmp_path)
        with any_store.open("a/b") as stream:
            put(any_store, "a/b", b"new", tmp_path)
            assert stream.read() == b"old"

    def test_an_empty_file_is_an_object(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "empty", b"", tmp_path)
        assert read(any_store, "empty") == b""

    def test_a_missing_file_stores_nothing(self, any_store: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            any_store.put_file("a", tmp_path / "nothing")
        assert any_store.stat("a") is None

    def test_a_link_to_another_file_is_refused(self, any_store: ObjectStore, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(b"password")
        (tmp_path / "link").symlink_to(tmp_path / "secret")
        with pytest.raises(ValueError, match="regular file"):
            any_store.put_file("a", tmp_path / "link")

    def test_what_was_fetched_can_be_put_again(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"same", tmp_path)
        any_store.fetch("a/b", tmp_path / "copy")
        any_store.put_file("a/b", tmp_path / "copy")
        assert read(any_store, "a/b") == b"same"
        assert not (tmp_path / "copy").exists()


class TestOpen:
    @pytest.mark.parametrize("key", ["a/missing", "a", "a/b/c"])
    def test_what_is_no_object_is_missing(self, any_store: ObjectStore, tmp_path: Path, key: str) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        with pytest.raises(ObjectMissing):
            read(any_store, key)


class TestFetch:
    def test_makes_a_local_file(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"x" * 100_000, tmp_path)
        any_store.fetch("a/b", tmp_path / "local")
        assert (tmp_path / "local").read_bytes() == b"x" * 100_000

    def test_the_file_outlives_the_object(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        any_store.fetch("a/b", tmp_path / "local")
        any_store.delete("a/b")
        assert (tmp_path / "local").read_bytes() == b"x"

    def test_removing_the_file_leaves_the_object(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        any_store.fetch("a/b", tmp_path / "local")
        (tmp_path / "local").unlink()
        assert read(any_store, "a/b") == b"x"

    def test_a_missing_object_makes_no_file(self, any_store: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(ObjectMissing):
            any_store.fetch("a/b", tmp_path / "local")
        assert not (tmp_path / "local").exists()

    def test_nothing_is_overwritten(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        (tmp_path / "local").write_bytes(b"mine")
        with pytest.raises(FileExistsError):
            any_store.fetch("a/b", tmp_path / "local")
        assert (tmp_path / "local").read_bytes() == b"mine"


class TestStat:
    def test_tells_size_and_age(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"12345", tmp_path)
        info = any_store.stat("a/b")
        assert info is not None
        assert (info.key, info.size) == ("a/b", 5)
        assert abs((datetime.now(UTC) - info.modified).total_seconds()) < 60

    @pytest.mark.parametrize("key", ["missing", "a", "a/b/c"])
    def test_what_is_no_object_has_none(self, any_store: ObjectStore, tmp_path: Path, key: str) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        assert any_store.stat(key) is None


class TestDelete:
    def test_the_object_is_gone_and_its_neighbour_stays(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        put(any_store, "a/c", b"y", tmp_path)
        any_store.delete("a/b")
        assert any_store.stat("a/b") is None
        assert read(any_store, "a/c") == b"y"

    @pytest.mark.parametrize("key", ["missing", "a/b", "a/b/c/d"])
    def test_twice_or_never_stored_is_fine(self, any_store: ObjectStore, tmp_path: Path, key: str) -> None:
        put(any_store, "a/b", b"x", tmp_path)
        any_store.delete(key)
        any_store.delete(key)

    def test_the_key_can_be_used_again(self, any_store: ObjectStore, tmp_path: Path) -> None:
        put(any_store, "a/b/c", b"x", tmp_path)
        any_store.delete("a/b/c")
        put(any_store, "a/b/c", b"y", tmp_path)
        assert read(any_store, "a/b/c") == b"y"


class TestList:
    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("", ["jobs/1/a", "jobs/1/sub/b", "jobs/10/c", "top"]),
            ("jobs/1/", ["jobs/1/a", "jobs/1/sub/b"]),
            ("jobs/1", ["jobs/1/a", "jobs/1/sub/b", "jobs/10/c"]),
            ("jobs/1/s", ["jobs/1/sub/b"]),
            ("nothing/", []),
            ("top", ["top"]),
        ],
    )
    def test_all_keys_that_begin_so(self, any_store: ObjectStore, tmp_path: Path, prefix: str, expected: list[str]) -> None:
        for key in ("jobs/1/a", "jobs/1/sub/b", "jobs/10/c", "top"):
            put(any_store, key, key.encode(), tmp_path)
        found: list[ObjectInfo] = list(any_store.list(prefix))
        assert sorted(info.key for info in found) == expected
        assert all(info.size == len(info.key) for info in found)

    def test_objects_may_be_deleted_while_they_are_listed(self, any_store: ObjectStore, tmp_path: Path) -> None:
        for number in range(5):
            put(any_store, f"a/{number}", b"x", tmp_path)
        for info in any_store.list("a/"):
            any_store.delete(info.key)
        assert list(any_store.list("")) == []


class TestKeys:
    @pytest.mark.parametrize("key", ["a", "jobs/1/round-2/model_1.pth", "A/b.c-d_e", "x" * 512])
    def test_plain_ones_are_taken(self, key: str) -> None:
        assert check_key(key) == key

    @pytest.mark.parametrize(
        "key",
        ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.b", ".tmp/x", "a b", "ä", "a\n", "a\0b", "a\\b", "a%2fb", "x" * 513, "C:x"],
    )
    def test_others_are_refused_everywhere(self, any_store: ObjectStore, tmp_path: Path, key: str) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"x")
        for call in (
            lambda: any_store.put_file(key, path),
            lambda: any_store.open(key),
            lambda: any_store.fetch(key, tmp_path / "target"),
            lambda: any_store.stat(key),
            lambda: any_store.delete(key),
            lambda: any_store.signed_get(key, 60, "x"),
            lambda: any_store.signed_put(key, 60, 10),
        ):
            with pytest.raises(ValueError, match="not a key"):
                call()
