"""Alembic's entry point. The URL comes from `gridx.migrations`, or from the settings when `alembic` is called by hand."""

from typing import Any

from sqlalchemy import Engine, create_engine, event, text

from alembic import context
from gridx.core.settings import load_settings
from gridx.tables import Base

# Two processes that start together on PostgreSQL: the second waits until the first has migrated. On SQLite BEGIN IMMEDIATE does that.
_LOCK = 7306829


def run() -> None:
    url = context.config.attributes.get("url") or load_settings().sqlalchemy_url
    engine = _sqlite_engine(url) if url.startswith("sqlite") else create_engine(url)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=connection.dialect.name == "sqlite",
            transactional_ddl=True,
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:id)"), {"id": _LOCK})
            context.run_migrations()
        connection.commit()
    engine.dispose()


def _sqlite_engine(url: str) -> Engine:
    """Real transactions around DDL. Foreign keys stay off, SQLite's default: batch mode drops a table and would take its children along."""
    engine = create_engine(url, connect_args={"isolation_level": None, "timeout": 60})

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


run()
