"""Sessions. Every commit of the product happens in `Database.write`.

SQLite: WAL, foreign keys on, and BEGIN IMMEDIATE for writers, so that a read-then-write never loses a race and never fails
half way with "database is locked". PostgreSQL: READ COMMITTED; contested rows change by one guarded UPDATE.
"""

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from sqlalchemy import BigInteger, DateTime, Dialect, Engine, Integer, MetaData, Table, TypeDecorator, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import ConnectionPoolEntry

from gridx.core.errors import Unavailable

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
_BUSY_TIMEOUT_S = 30
_PING_AFTER_S = 1.0

BigInt = BigInteger().with_variant(Integer, "sqlite")
"""64 bits on both databases; SQLite only counts up by itself for a column declared INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime, which SQLite would hand back naive."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime has no place in the database")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UtcDateTime, int: BigInt}


def table_of(model: type[Base]) -> Table:
    """The table of a mapped class, for statements that load no objects."""
    return cast("Table", model.__table__)


class Database:
    """An engine and its two kinds of session."""

    def __init__(self, url: str, pool_size: int = 10) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        self.engine = _sqlite_engine(url, pool_size) if self.is_sqlite else _postgresql_engine(url, pool_size)
        self._writer = self.engine.execution_options(gridx_write=True)

    @contextmanager
    def read(self) -> Generator[Session]:
        """A session that is rolled back at its end. Raises Unavailable when the database cannot be reached."""
        with _outages(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Generator[Session]:
        """A session that commits at its end, or rolls back when the block raises. Raises Unavailable as `read` does."""
        with _outages(), Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def dispose(self) -> None:
        self.engine.dispose()


@contextmanager
def _outages() -> Generator[None]:
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise Unavailable("the database cannot be reached right now; try again in a few seconds") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the database connection was lost; try again in a few seconds") from error
        raise


def _sqlite_engine(url: str, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=30,
        connect_args={"isolation_level": None, "timeout": _BUSY_TIMEOUT_S, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        is_write = connection.get_execution_options().get("gridx_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _postgresql_engine(url: str, pool_size: int) -> Engine:
    engine = create_engine(url, pool_size=pool_size, max_overflow=30, connect_args={"connect_timeout": 5})

    @event.listens_for(engine, "checkin")
    def _note(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _ping(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        # SQLAlchemy's own pre-ping asks each time, which is a tenth of a claim; a connection dies while it lies about.
        if time.monotonic() - record.info.get("used_at", math.inf) > _PING_AFTER_S:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError from error  # the pool tries another connection

    return engine
