"""Running the Alembic migrations, from a checkout or from an installed wheel."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from alembic import command

_INSTALLED = Path(__file__).resolve().parent / "_alembic"
_CHECKOUT = Path(__file__).resolve().parents[2] / "alembic"


def upgrade(url: str, revision: str = "head") -> None:
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    command.downgrade(_config(url), revision)


def head_revision() -> str | None:
    return ScriptDirectory.from_config(_config("sqlite://")).get_current_head()


def current_revision(url: str) -> str | None:
    """Where a database stands, or None when it was never migrated."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_INSTALLED if _INSTALLED.is_dir() else _CHECKOUT))
    config.attributes["url"] = url
    return config
