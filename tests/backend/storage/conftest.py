"""Every store that the conformance suite runs over. Another implementation joins by adding itself to `STORES`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gridx.storage.base import ObjectStore
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock


def _local(tmp_path: Path, clock: FakeClock) -> ObjectStore:
    return LocalStore(tmp_path / "objects", SECRET, clock=clock)


STORES: dict[str, Callable[[Path, FakeClock], ObjectStore]] = {"local": _local}


@pytest.fixture(params=sorted(STORES))
def any_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> ObjectStore:
    return STORES[request.param](tmp_path, clock)
