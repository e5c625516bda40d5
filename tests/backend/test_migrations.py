"""Migrations: up and down on both databases, equal to the tables of the code, also from an installed wheel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect
from sqlalchemy.exc import DBAPIError

from gridx.migrations import current_revision, downgrade, head_revision, upgrade
from gridx.tables import Base

ROOT = Path(__file__).resolve().parents[2]


def test_up_and_down_and_up_again(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    assert current_revision(empty_database_url) == head_revision()
    downgrade(empty_database_url, "base")
    engine = create_engine(empty_database_url)
    assert set(inspect(engine).get_table_names()) <= {"alembic_version"}
    upgrade(empty_database_url)
    engine.dispose()


def test_migrated_tables_are_those_of_the_code(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    engine = create_engine(empty_database_url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    assert differences == []


def test_entries_cannot_be_changed_in_a_migrated_database(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    engine = create_engine(empty_database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO transfers (reference, reason, created_at) VALUES ('r', 'r', '2030-01-01 00:00:00')")
    for statement in ("UPDATE transfers SET reason = 'x'", "DELETE FROM transfers"):
        with pytest.raises(DBAPIError, match="never changed"), engine.begin() as connection:
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_two_servers_that_start_together_migrate_once(empty_database_url: str) -> None:
    code = "import sys; from gridx.migrations import upgrade; upgrade(sys.argv[1])"
    url = create_engine(empty_database_url).url.render_as_string(hide_password=False)
    processes = [subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert current_revision(empty_database_url) == head_revision()


@pytest.mark.slow
def test_from_an_installed_wheel(tmp_path: Path) -> None:
    """The migrations travel inside the wheel: no checkout is needed to run them."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT / "backend")]
    subprocess.run(build, check=True, timeout=100, capture_output=True)
    [wheel] = tmp_path.glob("gridx_backend-*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)], check=True, timeout=100)
    code = "import gridx; from gridx.cli import main; print(gridx.__file__); main()"
    env = os.environ | {"PYTHONPATH": str(site), "GRIDX_HOME": str(tmp_path / "home"), "DATABASE_URL": "", "JWT_SECRET_KEY": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, "migrate"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(site) in done.stdout
    assert f"database is at {head_revision()}" in done.stdout
