"""What only a store of files has to fear."""

import threading
from pathlib import Path

import pytest

from gridx.storage.local import LocalStore


class TestPutFile:
    def test_many_writers_of_one_key_leave_one_whole_object(self, store: LocalStore, tmp_path: Path) -> None:
        gate = threading.Barrier(8)

        def work(number: int) -> None:
            path = tmp_path / f"file-{number}"
            path.write_bytes(bytes([number]) * 50_000)
            gate.wait()
            store.put_file("a/b", path)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.open("a/b") as stream:
            data = stream.read()
        assert len(data) == 50_000
        assert len(set(data)) == 1

    def test_a_neighbour_deleted_at_the_same_moment_takes_no_folder_away(self, store: LocalStore, tmp_path: Path) -> None:
        stop = threading.Event()

        def delete() -> None:
            while not stop.is_set():
                store.delete("a/b/other")

        thread = threading.Thread(target=delete)
        thread.start()
        try:
            for number in range(100):
                for key in ("a/b/other", "a/b/mine"):
                    path = tmp_path / "file"
                    path.write_bytes(b"x")
                    store.put_file(key, path)
                store.delete(f"a/b/{number}")
                assert store.stat("a/b/mine") is not None
                store.delete("a/b/mine")
        finally:
            stop.set()
            thread.join()

    def test_objects_cannot_be_written_through_a_fetched_file(self, store: LocalStore, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"x")
        store.put_file("a", path)
        store.fetch("a", tmp_path / "local")
        assert (tmp_path / "local").stat().st_mode & 0o222 == 0

    def test_from_another_file_system_it_is_copied(self, store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"x" * 1000)

        def refuse(*_: object) -> None:
            raise OSError(18, "Invalid cross-device link")

        monkeypatch.setattr(Path, "rename", refuse)
        store.put_file("a", path)
        assert not path.exists()
        with store.open("a") as stream:
            assert stream.read() == b"x" * 1000
