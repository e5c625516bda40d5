"""Every store that the conformance suite runs over. Another implementation joins by adding itself to `STORES`.

GRIDX_SUPABASE_TEST_URL, GRIDX_SUPABASE_TEST_KEY   a real project (or a self-hosted one): the suite then runs over it, too, in buckets
that it makes and removes
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from supabase import create_client

from gridx.storage.base import ObjectStore
from gridx.storage.local import LocalStore
from gridx.storage.supabase import SupabaseStore
from tests.backend.conftest import SECRET, FakeClock
from tests.support.fake_supabase import KEY, FakeSupabase

REAL = (os.environ.get("GRIDX_SUPABASE_TEST_URL", ""), os.environ.get("GRIDX_SUPABASE_TEST_KEY", ""))


def _local(tmp_path: Path, clock: FakeClock) -> AbstractContextManager[ObjectStore]:
    return nullcontext(LocalStore(tmp_path / "objects", SECRET, clock=clock))


@contextmanager
def _fake(tmp_path: Path, clock: FakeClock) -> Iterator[ObjectStore]:
    with FakeSupabase() as server:
        store = SupabaseStore(server.url, KEY, "gridx-files")
        yield store
        store.close()


@contextmanager
def _real(tmp_path: Path, clock: FakeClock) -> Iterator[ObjectStore]:
    store = SupabaseStore(*REAL, f"gridx-test-{secrets.token_hex(6)}")
    store.make_bucket()
    try:
        yield store
    finally:
        for info in store.list(""):
            store.delete(info.key)
        create_client(*REAL).storage.delete_bucket(store.bucket)
        store.close()


STORES: dict[str, Callable[[Path, FakeClock], AbstractContextManager[ObjectStore]]] = {"local": _local, "supabase-fake": _fake}
if all(REAL):
    STORES["supabase-real"] = _real


@pytest.fixture(params=sorted(STORES))
def any_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[ObjectStore]:
    with STORES[request.param](tmp_path, clock) as store:
        yield store


@pytest.fixture
def fake() -> Iterator[FakeSupabase]:
    with FakeSupabase() as server:
        yield server


@pytest.fixture
def supabase(fake: FakeSupabase) -> Iterator[SupabaseStore]:
    store = SupabaseStore(fake.url, KEY, "gridx-files")
    yield store
    store.close()
