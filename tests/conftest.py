"""Fixtures and rules that hold for every test.

GRIDX_REQUIRE=docker,postgresql   what a machine must have: tests that need it fail instead of being skipped
GRIDX_HYPOTHESIS=long             many more generated cases, and what is marked as long (make test-long)
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from tests.support import databases, docker_host, needs, postgres, session

hypothesis.settings.register_profile("ci", max_examples=30, deadline=None, print_blob=True)
hypothesis.settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("GRIDX_HYPOTHESIS", "ci"))

# Settings of the developer's own shell must not leak into what is tested.
_OWN_SETTINGS = ("DATABASE_URL", "JWT_SECRET_KEY", "SUPABASE_", "BACKEND_URL", "COORDINATOR_URL", "AGENT_ID", "WORKER_", "GRIDX_")
_KEPT = ("GRIDX_REQUIRE", "GRIDX_HYPOTHESIS", "GRIDX_TEST_", "GRIDX_SUPABASE_TEST_", "GRIDX_BASE_IMAGE", "GRIDX_WHEELS", "GRIDX_PIP_ARGS")


def pytest_configure(config: pytest.Config) -> None:
    needs.required()  # a misspelt name ends the run at once
    # Not as a person's terminal shows them: colouring a traceback and all its locals takes a second.
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.format_exc_info, structlog.dev.ConsoleRenderer(colors=False)]
    )
    if session.begin():
        config.add_cleanup(_take_down)
    for name in list(os.environ):
        if name.startswith(_OWN_SETTINGS) and not name.startswith(_KEPT):
            del os.environ[name]
    # Neither may those of a .env at the root: the environment wins over that file, and empty means unset.
    os.environ.update(dict.fromkeys(("DATABASE_URL", "JWT_SECRET_KEY", "SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_KEY"), ""))


def _take_down() -> None:
    try:
        postgres.stop()
        docker_host.stop()
    finally:
        session.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with the most patience first: one of them, begun last, would keep a single core busy at the end."""
    patience: dict[Path, float] = {}
    for item in items:
        marker = item.get_closest_marker("timeout")
        patience[item.path] = max(patience.get(item.path, 0.0), float(marker.args[0]) if marker else 0.0)
    items.sort(key=lambda item: -patience[item.path])


def pytest_report_header() -> str:
    wanted = ", ".join(sorted(needs.required())) or "nothing (what is missing is skipped by name)"
    return f"required of this machine: {wanted}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What searches counted (`record_property("counted", ...)`): how much a test that passes has looked at."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    lines = [f"{report.nodeid}: {text}" for report in reports for name, text in report.user_properties if name == "counted"]
    if lines:
        terminalreporter.section("counted")
        terminalreporter.write_line("\n".join(sorted(lines)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and os.environ.get("GRIDX_HYPOTHESIS") != "long":
        pytest.skip("runs with make test-long only")
    for name in needs.names_of(item):
        needs.demand(name)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database_kind(request: pytest.FixtureRequest) -> databases.Kind:
    """Runs a test once per database that Grid-X supports."""
    return request.param


@pytest.fixture
def make_database(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Makes databases: `make_database(kind, migrated=True)` -> SQLAlchemy URL of a fresh one. They end with the test."""
    made: list[str] = []

    def make(kind: databases.Kind, *, migrated: bool = True) -> str:
        made.append(databases.create(kind, tmp_path, migrated=migrated))
        return made[-1]

    yield make
    for url in made:
        databases.drop(url)


@pytest.fixture
def database_url(database_kind: databases.Kind, make_database: Callable[..., str]) -> str:
    """URL of a fresh, migrated database: once SQLite, once PostgreSQL."""
    return make_database(database_kind)


@pytest.fixture
def empty_database_url(database_kind: databases.Kind, make_database: Callable[..., str]) -> str:
    """URL of a database without any table, for tests of the migrations themselves."""
    return make_database(database_kind, migrated=False)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def module_database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a fresh, migrated database that all tests of a module share."""
    if request.param == "postgresql":
        needs.demand("postgresql")
    url = databases.create(request.param, tmp_path_factory.mktemp("database"))
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def sandbox_image() -> str:
    """Name of the sandbox image, built first when it is missing. Needs the marker `docker`."""
    needs.demand("docker")
    return docker_host.ensure_image()
