"""A running platform for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.platform import Platform


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A server on SQLite."""
    made = Platform(tmp_path / "home")
    try:
        made.start()
        yield made
        checked = made.gridx("check-ledger")
        assert checked.returncode == 0, checked.stderr
    finally:
        made.close()


@pytest.fixture
def platform_on_each(tmp_path: Path, empty_database_url: str) -> Iterator[Platform]:
    """A server on SQLite, then one on PostgreSQL, migrated by `gridx serve` itself."""
    made = Platform(tmp_path / "home", empty_database_url)
    try:
        made.start()
        yield made
        checked = made.gridx("check-ledger")
        assert checked.returncode == 0, checked.stderr
    finally:
        made.close()
