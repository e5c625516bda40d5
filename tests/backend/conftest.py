"""What every test of the backend may ask for: a real database of each kind with all tables, a clock that is moved by hand, and the
routes of accounts, files and datasets behind a test client."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from passlib.hash import bcrypt_sha256  # pyright: ignore[reportAttributeAccessIssue] - made at run time
from pydantic import SecretStr
from sqlalchemy import Engine

from gridx.accounts import passwords
from gridx.accounts.router import router as accounts_router
from gridx.core.db import Database
from gridx.core.http import HttpGuard, install_error_handlers
from gridx.core.settings import Settings
from gridx.datasets.router import router as datasets_router
from gridx.storage.local import LocalStore
from gridx.storage.router import router as files_router

SECRET = "0123456789abcdef" * 4


class FakeClock:
    """Starts at a fixed point in time and moves only when told to."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> datetime:
        self._now += timedelta(seconds=seconds)
        return self._now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session", autouse=True)
def shared_statements() -> Iterator[None]:
    """Compiles each SQL statement once per kind of database and test process, not once per test: every test has engines of its own."""
    first: dict[bool, Engine] = {}
    ordinary = Database.__init__

    def init(self: Database, url: str, pool_size: int = 10) -> None:
        ordinary(self, url, pool_size)
        model = first.setdefault(self.is_sqlite, self.engine)
        for engine in (self.engine, self._writer):  # pyright: ignore[reportPrivateUsage]
            engine.dialect, engine._compiled_cache = model.dialect, model._compiled_cache  # pyright: ignore[reportPrivateUsage]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "__init__", init)
        yield


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture
def sqlite_database(make_database: Callable[..., str]) -> Iterator[Database]:
    """For tests of routes whose SQL is tested on both kinds elsewhere."""
    database = Database(make_database("sqlite"))
    yield database
    database.dispose()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", jwt_secret_key=SecretStr(SECRET), _env_file=None)  # pyright: ignore[reportCallIssue]


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> LocalStore:
    return LocalStore(tmp_path / "objects", SECRET, clock=clock)


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of the same kind with 2^4 instead of 2^12 turns."""
    monkeypatch.setattr(passwords, "bcrypt_sha256", bcrypt_sha256.using(rounds=4))


@pytest.fixture
def make_api(settings: Settings, store: LocalStore, clock: FakeClock) -> Iterator[Callable[[Database], TestClient]]:
    """Makes a client of the routes of accounts, files and datasets on a database."""
    clients: list[TestClient] = []

    def make(database: Database) -> TestClient:
        app = FastAPI()
        app.state.database, app.state.settings, app.state.store, app.state.clock = database, settings, store, clock
        for router in (accounts_router, files_router, datasets_router):
            app.router.routes.extend(router.routes)
        install_error_handlers(app)
        app.add_middleware(HttpGuard, streaming={"/datasets": None, "/datasets/uploads/": None, "/files/": None})
        clients.append(TestClient(app))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def api(sqlite_database: Database, make_api: Callable[[Database], TestClient]) -> TestClient:
    return make_api(sqlite_database)


@dataclass(frozen=True)
class Person:
    id: int
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture
def log_in(api: TestClient) -> Callable[..., Person]:
    """Registers somebody and logs in: `log_in("ada@example.com", "buyer")`. No cookie is kept."""

    def log_in(email: str = "ada@example.com", role: str = "buyer") -> Person:
        answer = api.post("/auth/register", json={"email": email, "password": "correct horse", "role": role})
        assert answer.status_code == 201, answer.text
        token = api.post("/auth/login", json={"email": email, "password": "correct horse"}).json()["access_token"]
        api.cookies.clear()
        return Person(answer.json()["id"], token)

    return log_in
