"""`gridx`: serve, background, migrate, doctor, check-ledger, aggregate, admin."""

import secrets
import signal
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import SecretStr
from sqlalchemy import Inspector, create_engine, inspect, make_url, text

from gridx.accounts import passwords
from gridx.accounts import service as accounts
from gridx.accounts.schemas import normalise_email
from gridx.agents import service as agents
from gridx.core.db import Database
from gridx.core.errors import GridxError
from gridx.core.logs import configure_logs
from gridx.core.settings import Settings, load_settings
from gridx.core.supervisor import Child, supervise
from gridx.core.text import MAX_ID
from gridx.jobs import dispatch
from gridx.ledger import check as ledger_check
from gridx.migrations import current_revision, downgrade, head_revision, upgrade
from gridx.storage.doctor import check_storage
from gridx.storage.select import make_store
from gridx.tables import Base

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="The Grid-X server.")
admin = typer.Typer(no_args_is_help=True, help="Users, credits, agents.")
app.add_typer(admin, name="admin")

_TRANSACTION_POOLER_PORT = 6543
_OPEN_TO_THE_API = """
    SELECT bool_or(has_table_privilege(role.rolname, relation.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE'))
    FROM pg_roles AS role, pg_class AS relation
    WHERE role.rolname IN ('anon', 'authenticated') AND relation.relnamespace = current_schema()::regnamespace AND relation.relkind = 'r'
"""
"""NULL where there are no such roles."""


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    background: Annotated[bool, typer.Option(help="also run background work, as a process of its own")] = True,
    reload: Annotated[bool, typer.Option(help="restart the API when its code changes (development)")] = False,
) -> None:
    """Migrate, then run the API and the background work as processes; a dead one is started anew."""
    settings = _settings()
    _require_free(host, port)
    make_store(settings)  # a store that cannot be made is said once, here
    upgrade(settings.sqlalchemy_url)
    python = [sys.executable, "-m", "gridx.start"]
    api = [*python, "gridx.serve_api", "--host", host, "--port", str(port)]
    children = [Child("api", [*api, "--reload"] if reload else api)]
    if background:
        children.append(Child("background", [*python, "gridx.background.__main__"]))
        if settings.orchestrator_port:
            _ = settings.orchestrator_tls  # files that are missing are said once, here
            children.append(Child("orchestrator", [*python, "gridx.orchestrator.__main__", "--host", host]))
    raise typer.Exit(supervise(children))


def _require_free(host: str, port: int) -> None:
    """Ends with a sentence when the address cannot be listened on: the API would die of it again and again."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        words = error.strerror or error
        typer.echo(f"cannot listen on {host} port {port}: {words}; end what does, or choose another with --port", err=True)
        raise typer.Exit(1) from None


@app.command()
def background() -> None:
    """Run background work alone: any number of such processes share it."""
    from gridx.background.__main__ import run  # heavy: brings torch, which no other command needs

    settings = _settings()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run(settings, stop)


@app.command()
def orchestrator(
    standalone: Annotated[bool, typer.Option("--standalone", help="one group on this machine, without accounts and database")] = False,
    world_size: Annotated[int, typer.Option(min=1, max=1024, help="ranks of the standalone group")] = 4,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="default 50051, or GRIDX_ORCHESTRATOR_PORT")] = None,
    master_port: Annotated[int, typer.Option(min=1, max=65535, help="of rank 0, in the standalone group")] = 29500,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="show the ranks live in this terminal")] = False,
) -> None:
    """The rendezvous of synchronous training (gRPC): gives ranks, and tells them when all are there. `gridx serve` runs one."""
    from gridx.orchestrator import command  # brings grpc, which no other command needs

    raise typer.Exit(
        command.run_standalone(_settings(), world_size, host, port, master_port, dashboard=dashboard)
        if standalone
        else command.run_for_platform(_settings(), host, port, dashboard=dashboard)
    )


@app.command()
def migrate(revision: Annotated[str, typer.Argument(help="where to go; 'base' takes everything down")] = "head") -> None:
    """Bring the database to the newest layout, or to another one."""
    settings = _settings()
    if revision == "base":
        downgrade(settings.sqlalchemy_url, revision)
    else:
        upgrade(settings.sqlalchemy_url, revision)
    typer.echo(f"database is at {current_revision(settings.sqlalchemy_url) or 'base'}")


@app.command()
def doctor() -> None:
    """Check settings, database and storage; say what to do for each failure."""
    settings = _settings()
    failures = 0
    for name, problem in _checks(settings):
        typer.echo(f"{'ok  ' if problem is None else 'FAIL'} {name}{'' if problem is None else ': ' + problem}")
        failures += problem is not None
    raise typer.Exit(1 if failures else 0)


@app.command("check-ledger")
def check_ledger() -> None:
    """Prove that no credit was made or lost; exit 1 when it can't be proved."""
    with _database() as database, database.read() as session:
        problems = ledger_check.check(session)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo("the ledger is clean: all entries sum to 0, every balance equals its entries, no account is overdrawn")


@app.command()
def aggregate(job_id: Annotated[int, typer.Argument(metavar="JOB", min=1, max=MAX_ID)]) -> None:
    """Merge a job's current round now with the updates that were accepted so far, instead of waiting for the rest."""
    from gridx.background.force import force_aggregate  # heavy: brings torch

    typer.echo(force_aggregate(_settings(), job_id))


@admin.command()
def grant(email: str, amount: Annotated[int, typer.Argument(min=1)], reason: str) -> None:
    """Add credits to a user's wallet for a stated reason."""
    with _database() as database, database.write() as session:
        accounts.grant(
            session, email=normalise_email(email), amount=amount, reason=reason, reference=f"grant:{secrets.token_hex(8)}", now=_now()
        )
    typer.echo(f"{amount} credits granted to {email}: {reason}")


@admin.command()
def disable(email: str) -> None:
    """Keep a user out. Their tokens end at once."""
    with _database() as database, database.write() as session:
        accounts.set_disabled(session, email=normalise_email(email), is_disabled=True)
    typer.echo(f"{email} is disabled")


@admin.command()
def enable(email: str) -> None:
    """Let a disabled user in again."""
    with _database() as database, database.write() as session:
        accounts.set_disabled(session, email=normalise_email(email), is_disabled=False)
    typer.echo(f"{email} is enabled")


@admin.command("reset-password")
def reset_password(email: str) -> None:
    """Give a user a new random password, shown once; all their sessions end."""
    password = secrets.token_urlsafe(15)
    hashed = passwords.hash_password(SecretStr(password))
    with _database() as database, database.write() as session:
        accounts.reset_password(session, email=normalise_email(email), password_hash=hashed)
    typer.echo(f"new password of {email}: {password}")


@admin.command()
def invite(email: Annotated[str, typer.Option(help="bind the invitation to one address")] = "") -> None:
    """Make an invitation code for GRIDX_REGISTRATION=invite, shown once."""
    with _database() as database, database.write() as session:
        code = accounts.create_invite(session, email=normalise_email(email) if email else None, now=_now())
    typer.echo(code)


@admin.command("ban-agent")
def ban_agent(agent_id: str, reason: str) -> None:
    """Keep a machine out; its token and its work end at once."""
    settings = _settings()
    with _database() as database, database.write() as session:
        agents.ban(session, agent_id, reason)
        dispatch.end_leases(session, [agent_id], f"the machine was banned: {reason}", _now(), settings)
    typer.echo(f"{agent_id} is banned")


@admin.command("unban-agent")
def unban_agent(agent_id: str) -> None:
    """Let a banned machine register again."""
    with _database() as database, database.write() as session:
        agents.lift_ban(session, agent_id)
    typer.echo(f"{agent_id} may register again")


def main() -> None:
    try:
        app()
    except (GridxError, ValueError, OSError) as error:
        typer.echo(f"gridx: {error.detail if isinstance(error, GridxError) else error}", err=True)
        sys.exit(1)


def _settings() -> Settings:
    settings = load_settings()
    configure_logs(settings.log_level)
    return settings


@contextmanager
def _database() -> Generator[Database]:
    database = Database(_settings().sqlalchemy_url)
    try:
        yield database
    finally:
        database.dispose()


def _checks(settings: Settings) -> Iterator[tuple[str, str | None]]:
    database = Database(settings.sqlalchemy_url)
    try:
        with database.read() as session:
            session.execute(text("SELECT 1"))
        yield "database can be reached", None
    except GridxError as error:
        yield "database can be reached", f"{error.detail}. Check DATABASE_URL"
        return
    finally:
        database.dispose()
    revision, head = current_revision(settings.sqlalchemy_url), head_revision()
    yield (
        "database layout is current",
        None if revision == head else f"it is at {revision or 'nothing'}, wanted is {head}. Run: gridx migrate",
    )
    if revision == head:
        yield "tables and columns are all there", _missing_from(settings.sqlalchemy_url)
    if not settings.sqlalchemy_url.startswith("sqlite"):
        yield from _check_postgresql(settings.sqlalchemy_url)
    yield from check_storage(settings)


def _missing_from(url: str) -> str | None:
    """Names tables and columns that the database lacks."""
    engine = create_engine(url)
    try:
        inspector = inspect(engine)
        present = set(inspector.get_table_names())
        missing = [
            table.name if table.name not in present else f"{table.name}.{column}"
            for table in Base.metadata.sorted_tables
            for column in sorted({column.name for column in table.columns} - _columns(inspector, table.name, present))
        ]
    finally:
        engine.dispose()
    return f"missing: {', '.join(dict.fromkeys(missing))}. Restore a backup, or start with an empty database" if missing else None


def _columns(inspector: Inspector, table: str, present: set[str]) -> set[str]:
    return {column["name"] for column in inspector.get_columns(table)} if table in present else set()


def _check_postgresql(url: str) -> Iterator[tuple[str, str | None]]:
    """What Supabase does differently: its pooler loses notifications, and its API lets anybody read tables in `public`."""
    if make_url(url).port == _TRANSACTION_POOLER_PORT:
        yield "database connection is direct", "port 6543 is a transaction pooler, which loses wake-ups. Use the direct or session address"
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            is_open = connection.scalar(text(_OPEN_TO_THE_API))
    finally:
        engine.dispose()
    if is_open is not None:
        wrong = "the project's API may read or write them. Run the SQL that docs/operations.md gives under Supabase" if is_open else None
        yield "tables are closed to Supabase's API", wrong


def _now() -> datetime:
    return datetime.now(UTC)
