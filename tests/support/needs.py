"""What a test may need from the machine, found once per session; GRIDX_REQUIRE turns what is missing from a skip into a failure."""

import functools
import importlib.util
import os
from collections.abc import Callable

import pytest

from tests.support import chromium, docker_host, postgres


def _flwr() -> str | None:
    return None if importlib.util.find_spec("flwr") else "the package flwr is not installed"


# Each answers None when the thing is there, else why not, in words.
_PROBES: dict[str, Callable[[], str | None]] = {
    "docker": docker_host.why_unavailable,
    "postgresql": postgres.why_unavailable,
    "chromium": chromium.why_unavailable,
    "flwr": _flwr,
}


@functools.cache
def _why_missing(name: str) -> str | None:
    return _PROBES[name]()


def required() -> set[str]:
    """The names in GRIDX_REQUIRE, a comma-separated list.

    Raises:
        pytest.UsageError: a name that no test can need.
    """
    names = {name.strip() for name in os.environ.get("GRIDX_REQUIRE", "").split(",") if name.strip()}
    if unknown := names - _PROBES.keys():
        raise pytest.UsageError(f"GRIDX_REQUIRE knows {', '.join(sorted(_PROBES))}; not {', '.join(sorted(unknown))}")
    return names


def names_of(item: pytest.Item) -> list[str]:
    """The needs that an item's markers name."""
    return [name for name in _PROBES if item.get_closest_marker(name)]


def demand(name: str) -> None:
    """Skips the running test when this machine lacks `name`, or fails it when GRIDX_REQUIRE names it."""
    reason = _why_missing(name)
    if reason is None:
        return
    if name in required():
        pytest.fail(f"GRIDX_REQUIRE names {name}, but {reason}", pytrace=False)
    pytest.skip(f"needs {name}: {reason}")
