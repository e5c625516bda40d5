"""Datasets on a real database of each kind, and uploads that several processes may go on with."""

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from sqlalchemy import text
from starlette.requests import ClientDisconnect

from gridx.accounts.service import Actor, actor_of, add_user
from gridx.core.db import Database
from gridx.core.errors import NotFound, Unavailable
from gridx.datasets import service
from gridx.datasets.csv_records import CsvScan
from gridx.datasets.models import Dataset
from gridx.datasets.uploads import UploadBusy, Uploads, WrongOffset, sweep_uploads
from gridx.storage.local import LocalStore
from tests.backend.conftest import FakeClock

CSV = b"\xef\xbb\xbfx;y\r\n1;2\r\n3;4\r\n"
SHA = "0" * 64


@pytest.fixture
def ada(database: Database, clock: FakeClock) -> Actor:
    with database.write() as session:
        return actor_of(add_user(session, email="ada@example.com", password_hash="h", role="buyer", now=clock.now()))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_bytes(CSV)
    return path


def create(
    database: Database, store: LocalStore, actor: Actor, path: Path, clock: FakeClock, *, name: str = "d.csv", upload_id: str | None = None
) -> Dataset:
    return service.create_from_file(database, store, actor, path, name=name, sha256=SHA, now=clock.now(), upload_id=upload_id)


class TestCreateFromFile:
    def test_keeps_what_the_scan_found(self, database: Database, store: LocalStore, ada: Actor, csv: Path, clock: FakeClock) -> None:
        dataset = create(database, store, ada, csv, clock)
        with database.read() as session:
            kept = service.get_dataset(session, ada, dataset.id)
        assert (kept.rows, kept.columns, kept.delimiter, kept.bytes, kept.header_end) == (2, ["x", "y"], ";", len(CSV), 8)
        scan = CsvScan.from_json(kept.scan)
        assert (scan.has_bom, scan.line_end, scan.rows) == (True, b"\r\n", 2)
        assert kept.created_at == clock.now()
        assert not csv.exists()
        with store.open(kept.object_key) as stream:
            assert stream.read() == CSV

    def test_when_the_database_fails_no_object_is_left(
        self, database: Database, store: LocalStore, ada: Actor, csv: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            raise Unavailable("away")

        monkeypatch.setattr(database, "write", fail)
        with pytest.raises(Unavailable):
            create(database, store, ada, csv, clock)
        assert list(store.list("")) == []

    def test_an_upload_becomes_one_dataset_even_twice_at_once(
        self, database: Database, store: LocalStore, ada: Actor, tmp_path: Path, clock: FakeClock
    ) -> None:
        made: list[int] = []
        gate = threading.Barrier(4)

        def work(number: int) -> None:
            path = tmp_path / f"{number}.csv"
            path.write_bytes(CSV)
            gate.wait()
            made.append(create(database, store, ada, path, clock, upload_id="f" * 32).id)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
        assert len(set(made)) == 1
        assert len(list(store.list("datasets/"))) == 1

    def test_ids_are_never_used_twice(self, database: Database, store: LocalStore, ada: Actor, tmp_path: Path, clock: FakeClock) -> None:
        ids: list[int] = []
        for number in range(2):
            path = tmp_path / f"{number}.csv"
            path.write_bytes(CSV)
            ids.append(create(database, store, ada, path, clock).id)
            with database.write() as session:
                session.execute(text("DELETE FROM datasets"))
        assert ids[1] > ids[0]


class TestCleanName:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("a.csv", "a.csv"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\a.csv", "a.csv"),
            ("a\r\nb\0.csv", "a  b .csv"),
            ("<script>.csv", "<script>.csv"),
            ("", "dataset.csv"),
            ("dir/", "dataset.csv"),
            ("x" * 500, "x" * 200),
        ],
    )
    def test_is_one_short_line(self, name: str, expected: str) -> None:
        assert service.clean_name(name) == expected


class TestFindByName:
    def test_is_the_newest_of_the_actors_own(
        self, database: Database, store: LocalStore, ada: Actor, tmp_path: Path, clock: FakeClock
    ) -> None:
        ids: list[int] = []
        for number in range(3):
            path = tmp_path / f"{number}.csv"
            path.write_bytes(CSV)
            ids.append(create(database, store, ada, path, clock, name="same").id)
        with database.write() as session:
            service.delete_dataset(session, ada, ids[2], clock.now())
        with database.read() as session:
            assert service.find_by_name(session, ada, "same").id == ids[1]
            for actor, name in ((ada, "other"), (Actor(99, "x@y.org", "buyer"), "same")):
                with pytest.raises(NotFound):
                    service.find_by_name(session, actor, name)


ACTOR = Actor(7, "a@x.org", "buyer")


async def blocks_of(*blocks: bytes | Exception) -> AsyncIterator[bytes]:
    for block in blocks:
        if isinstance(block, Exception):
            raise block
        yield block


class TestUploads:
    def test_what_arrived_before_the_sender_went_away_is_kept(self, tmp_path: Path) -> None:
        uploads = Uploads(tmp_path)
        upload = uploads.begin(ACTOR, name="d", size=10, sha256=None)
        anyio.run(uploads.append, ACTOR, upload, 0, blocks_of(b"abc", b"de", ClientDisconnect()))
        assert uploads.offset(ACTOR, upload) == 5
        assert anyio.run(Uploads(tmp_path).append, ACTOR, upload, 5, blocks_of(b"fghij")) == 10
        assert uploads.part(ACTOR, upload).read_bytes() == b"abcdefghij"

    def test_two_requests_at_once_do_not_mix(self, tmp_path: Path) -> None:
        uploads = Uploads(tmp_path)
        upload = uploads.begin(ACTOR, name="d", size=10, sha256=None)

        async def first() -> AsyncIterator[bytes]:
            yield b"abc"
            with pytest.raises(UploadBusy):
                await uploads.append(ACTOR, upload, 0, blocks_of(b"xyz"))
            with pytest.raises(UploadBusy), uploads.exclusive(ACTOR, upload):
                pass
            yield b"de"

        assert anyio.run(uploads.append, ACTOR, upload, 0, first()) == 5
        assert uploads.part(ACTOR, upload).read_bytes() == b"abcde"
        with pytest.raises(WrongOffset):
            anyio.run(uploads.append, ACTOR, upload, 0, blocks_of(b"xyz"))


class TestSweepUploads:
    def test_only_those_go_that_nothing_was_added_to_for_a_day(self, tmp_path: Path, clock: FakeClock) -> None:
        uploads = Uploads(tmp_path)
        old, growing = (uploads.begin(ACTOR, name="d", size=10, sha256=None) for _ in range(2))
        for upload in (old, growing):
            anyio.run(uploads.append, ACTOR, upload, 0, blocks_of(b"abc"))
        now, day_ago = clock.now(), clock.now().timestamp() - 86401
        for path in (tmp_path / "uploads" / "7").iterdir():
            os.utime(path, (day_ago, day_ago))
        fresh = now.timestamp() - 60
        os.utime(uploads.part(ACTOR, growing), (fresh, fresh))
        assert sweep_uploads(tmp_path, now) == 2
        assert uploads.offset(ACTOR, uploads.get(ACTOR, growing.id)) == 3
        with pytest.raises(NotFound):
            uploads.get(ACTOR, old.id)

    def test_without_any_uploads_there_is_nothing_to_do(self, tmp_path: Path, clock: FakeClock) -> None:
        assert sweep_uploads(tmp_path / "nowhere", clock.now()) == 0
