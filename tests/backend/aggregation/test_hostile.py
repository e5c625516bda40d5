"""The rest of what strangers may upload, the limits of the child that reads it, and what becomes of all of it on a whole server."""

import multiprocessing
import os
import pickle
import signal
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import torch
from sqlalchemy import select

from gridx.aggregation import safe_load, update_file
from gridx.aggregation.safe_load import verify_in_child
from gridx.aggregation.summary import UpdateCaps, UpdateRefused
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.jobs.models import Attempt
from gridx.storage.local import LocalStore
from tests.backend.aggregation.hostile import HOSTILE, Maker, good_state, rezipped, saved, tensor_pickle, with_pickle
from tests.backend.conftest import FakeClock
from tests.backend.jobs.conftest import World, make_world, pth

_CAP = 1 << 28
_MOST_GROWTH_BYTES = 96 << 20


def _good_bytes() -> bytes:
    return pth(good_state())


def _patched(change: Callable[[bytearray], None]) -> Maker:
    """A good file with some bytes changed."""

    def make(path: Path) -> None:
        raw = bytearray(_good_bytes())
        change(raw)
        path.write_bytes(raw)

    return make


def _local_header_contradicts(raw: bytearray) -> None:
    raw[8:10] = struct.pack("<H", 8)  # "deflated", where the directory says "stored"


def _local_name_contradicts(raw: bytearray) -> None:
    at = raw.index(b"/data.pkl")
    raw[at + 1 : at + 5] = b"DATA"


def _encrypted(raw: bytearray) -> None:
    at = raw.index(b"PK\x01\x02")
    raw[at + 8] |= 1


def _overlapping(raw: bytearray) -> None:
    """Two directory entries for one place in the file."""
    first = raw.index(b"PK\x01\x02")
    second = raw.index(b"PK\x01\x02", first + 4)
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]


def _commented(path: Path) -> None:
    path.write_bytes(_good_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"#!/bin/sh"


def _with_more_entries(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
        for number in range(UpdateCaps().max_tensors + 20):
            target.writestr(f"archive/data/{number}", b"")


def _without_pickle(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("archive/version", b"3\n")


def _big_endian(name: str, content: bytes, target: zipfile.ZipFile) -> None:
    target.writestr(name, b"big" if name.endswith("byteorder") else content)


def _safetensors(path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))


def _laughs() -> bytes:
    """A dict whose one value would have 2^60 items, were all its references followed."""
    inner = b"]q\x00" + b"".join(b"](h" + bytes([level]) + b"h" + bytes([level]) + b"eq" + bytes([level + 1]) for level in range(60))
    return b"\x80\x02}X\x01\x00\x00\x00w(" + inner + b"ts."


def _invalid_sparse(path: Path) -> None:
    """Indices far outside of the shape: using it would crash the process."""
    torch.save({"w": torch.sparse_coo_tensor(torch.tensor([[1 << 40], [7]]), torch.ones(1), (2, 3), check_invariants=False)}, path)


MORE: dict[str, tuple[str, Maker]] = {
    "local_header_contradicts": ("bad_archive", _patched(_local_header_contradicts)),
    "local_name_contradicts": ("damaged", _patched(_local_name_contradicts)),
    "encrypted": ("compressed", _patched(_encrypted)),
    "overlapping": ("bad_archive", _patched(_overlapping)),
    "comment": ("bad_archive", _commented),
    "more_entries_than_tensors": ("too_many_tensors", _with_more_entries),
    "no_pickle": ("bad_archive", _without_pickle),
    "big_endian": ("byte_order", rezipped(_big_endian)),
    "safetensors": ("safetensors", _safetensors),
    "billion_laughs": ("not_a_tensor", with_pickle(_laughs())),
    "invalid_sparse": ("sparse_tensor", _invalid_sparse),
    "negative_stride": ("unreadable", with_pickle(tensor_pickle((4,), (-1,), 16))),
    "overflowing_shape": ("bad_tensor", with_pickle(tensor_pickle((1 << 31, 1 << 31), (0, 0), 16))),
    "endless_name": ("bad_name", saved({"w" * 100_000: torch.ones(2)})),
    "empty_name": ("bad_name", saved({"": torch.ones(2)})),
    "bidirectional_name": ("bad_name", saved({"w\u202egnp.exe": torch.ones(2)})),
    "directory_only": ("no_torch_archive", lambda path: zipfile.ZipFile(path, "w").close()),
    "noise": ("no_torch_archive", lambda path: path.write_bytes(os.urandom(1 << 16))),
}
ALL = HOSTILE | MORE


class TestMore:
    @pytest.mark.parametrize("name", MORE)
    def test_is_refused_in_the_child_and_leaves_nothing(self, tmp_path: Path, name: str) -> None:
        code, make = MORE[name]
        make(tmp_path / "model.pth")
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(tmp_path / "model.pth", tmp_path / "out.pth", UpdateCaps(max_bytes=_CAP))
        assert refused.value.code == code, refused.value.detail
        assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]


class TestLimits:
    """A child that was taken over does what it likes until its limits end it. Forked here, so that the test can say what it does."""

    @pytest.fixture
    def child_that(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
        def prepare(action: Callable[[], object]) -> None:
            monkeypatch.setattr(safe_load, "_CONTEXT", multiprocessing.get_context("fork"))
            monkeypatch.setattr(update_file, "inspect_update", lambda *_: action())

        return prepare

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        path = tmp_path / "model.pth"
        path.write_bytes(_good_bytes())
        return path

    @pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL])
    def test_a_death_by_signal(self, child_that: Callable[..., None], source: Path, number: signal.Signals) -> None:
        child_that(lambda: os.kill(os.getpid(), number))
        with pytest.raises(UpdateRefused, match=number.name) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps())
        assert refused.value.code == "crashed"

    def test_processor_time(self, child_that: Callable[..., None], source: Path) -> None:
        def spin() -> None:
            while True:
                pass

        child_that(spin)
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps(cpu_s=1))
        assert refused.value.code == "cpu_limit"

    def test_time(self, child_that: Callable[..., None], source: Path) -> None:
        child_that(signal.pause)
        begun = time.monotonic()
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps(), timeout_s=0.3)
        assert refused.value.code == "timeout"
        assert time.monotonic() - begun < 20

    def test_memory(self, child_that: Callable[..., None], source: Path) -> None:
        child_that(lambda: bytearray(8 << 30))
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps())
        assert refused.value.code == "memory_limit"

    def test_file_size(self, child_that: Callable[..., None], source: Path) -> None:
        def fill() -> None:
            with source.with_name("big").open("wb") as file:
                file.truncate(1 << 40)

        child_that(fill)
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps(max_bytes=1 << 20))
        assert refused.value.code in ("unreadable", "crashed")
        assert source.with_name("big").stat().st_size == 0

    def test_an_exit_in_the_middle(self, child_that: Callable[..., None], source: Path) -> None:
        child_that(lambda: os._exit(0))
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, source.with_name("out.pth"), UpdateCaps())
        assert refused.value.code == "crashed"


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestOnAServer:
    """Every one of them by way of a job: refused by its name, paid by nobody, kept nowhere, and the server as it was before."""

    @pytest.fixture
    def world(self, sqlite_database: Database, settings: Settings, clock: FakeClock, store: LocalStore) -> Iterator[World]:
        settings.max_update_bytes = _CAP
        made = make_world(sqlite_database, settings, clock, store)
        with made.api:
            yield made
            assert made.ledger_problems() == []
        made.work.keeper.close()

    def test_all_of_them(self, world: World, tmp_path: Path) -> None:
        buyer, agent = world.person("ada@buyers.example.com"), world.agent("a")
        dataset_id = world.api.post("/datasets", content=b"x,y\n1,2\n3,4\n", headers=buyer.headers).json()["id"]
        body = {"script": "import torch\n", "dataset_id": dataset_id, "chunks": 1}
        safe_load.warm_up()
        process, before = psutil.Process(), psutil.Process().memory_info().rss
        most = before
        for name, (code, make) in ALL.items():
            path = tmp_path / f"{name}.pth"
            make(path)
            data = path.read_bytes()
            path.unlink()
            most = max(most, process.memory_info().rss - len(data))
            job_id = world.api.post("/jobs", json=body | {"title": name}, headers=buyer.headers).json()["job_id"]
            world.drain()
            agent.request()
            assert agent.upload(data).status_code == 204
            if not data:
                assert agent.complete(data).status_code in (200, 400, 422)
            else:
                assert agent.complete(data).status_code == 200
            world.drain()
            with world.database.read() as session:
                attempt = session.scalars(select(Attempt).where(Attempt.job_id == job_id)).one()
            if attempt.status != "RUNNING":
                assert (attempt.status, attempt.fault, attempt.update_key, attempt.paid) == ("REFUSED", code, None, 0), name
            assert not list(world.store.list(f"jobs/{job_id}/updates/"))
            listed = world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]
            assert {item["kind"] for item in listed} == {"script", "schema"}, "what was refused is never served"
            assert world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers).status_code == 200
            most = max(most, process.memory_info().rss - len(data))
        assert world.credits(buyer) == 100
        assert world.credits(agent.owner) == 100
        good = world.api.post("/jobs", json=body | {"title": "good"}, headers=buyer.headers).json()["job_id"]
        world.drain()
        agent.request()
        agent.finish(good_state())
        world.drain()
        assert world.view(buyer, good)["status"] == "COMPLETED"
        print(f"{len(ALL)} hostile uploads refused by name; this process grew by {(most - before) >> 20} MiB at most")
        assert most - before < _MOST_GROWTH_BYTES
