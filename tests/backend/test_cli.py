"""The `gridx` command: administration and proofs on a real database."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gridx.accounts import service as accounts
from gridx.core.clock import SystemClock
from gridx.core.db import Database
from gridx.ledger import accounts as ledger_accounts

Gridx = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def gridx(tmp_path: Path, database_url: str) -> Gridx:
    """Runs `gridx` on a migrated database with one user, ada@example.com."""
    database = Database(database_url)
    with database.write() as session:
        accounts.add_user(session, email="ada@example.com", password_hash="x", role="both", now=SystemClock().now())
    url = database.engine.url.render_as_string(hide_password=False)
    database.dispose()

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        env = os.environ | {"GRIDX_HOME": str(tmp_path / "home"), "DATABASE_URL": url}
        command = [str(Path(sys.executable).with_name("gridx")), *arguments]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    return run


def test_grant_moves_credits_with_a_reason(gridx: Gridx, database_url: str) -> None:
    done = gridx("admin", "grant", "Ada@Example.com", "40", "fair share of May")
    assert done.returncode == 0, done.stderr
    database = Database(database_url)
    with database.read() as session:
        assert ledger_accounts.balance(session, "wallet:1") == 140
    database.dispose()
    assert gridx("check-ledger").returncode == 0


def test_check_ledger_exits_1_when_a_balance_was_altered(gridx: Gridx, database_url: str) -> None:
    from sqlalchemy import text

    database = Database(database_url)
    with database.write() as session:
        session.execute(text("UPDATE ledger_accounts SET balance = balance + 7 WHERE code = 'wallet:1'"))
    database.dispose()
    done = gridx("check-ledger")
    assert done.returncode == 1
    assert "wallet:1" in done.stderr


def test_disable_enable_and_reset_password(gridx: Gridx) -> None:
    assert gridx("admin", "disable", "ada@example.com").returncode == 0
    assert gridx("admin", "enable", "ada@example.com").returncode == 0
    assert "new password" in gridx("admin", "reset-password", "ada@example.com").stdout


def test_an_unknown_user_is_named_in_words(gridx: Gridx) -> None:
    done = gridx("admin", "disable", "nobody@example.com")
    assert done.returncode == 1
    assert "nobody@example.com" in done.stderr
    assert "Traceback" not in done.stderr


def test_invite_prints_a_code(gridx: Gridx) -> None:
    assert len(gridx("admin", "invite").stdout.strip()) > 20


def test_doctor_finds_nothing_wrong(gridx: Gridx) -> None:
    done = gridx("doctor")
    assert done.returncode == 0, done.stdout
    assert "FAIL" not in done.stdout


def test_a_home_that_cannot_be_written_is_named_without_a_traceback(gridx: Gridx, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    done = gridx("check-ledger")
    assert done.returncode == 1
    assert done.stderr.startswith("gridx: ")
    assert str(tmp_path / "home") in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", ["0", "-1", "9007199254740993", "9" * 30, "1.5"])
def test_aggregate_of_what_is_no_job(gridx: Gridx, number: str) -> None:
    done = gridx("aggregate", "--", number)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_aggregate_of_an_unknown_job(gridx: Gridx) -> None:
    done = gridx("aggregate", "99")
    assert done.returncode == 1
    assert "no such job" in done.stderr


def test_serve_on_a_taken_port_says_so_and_ends(gridx: Gridx) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = gridx("serve", "--port", str(port))
    assert done.returncode == 1
    assert f"port {port}: Address already in use" in done.stderr
    assert "--port" in done.stderr


def test_the_servers_own_processes_start_without_pytorch() -> None:
    """It costs each of them two seconds and 200 MB; the children that read weights have it."""
    code = "import gridx.app, gridx.serve_api, gridx.background.__main__, gridx.orchestrator.__main__, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout == "False\n"
