"""The web process: routers, error handler, web app."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import text

from gridx.accounts.router import router as accounts_router
from gridx.agents.presence import Presence
from gridx.agents.router import router as agents_router
from gridx.core.clock import Clock, SystemClock
from gridx.core.db import Database
from gridx.core.deps import ClockDep, DatabaseDep, ReadSession, SettingsDep
from gridx.core.http import ERRORS, HttpGuard, install_error_handlers
from gridx.core.settings import Settings, load_settings
from gridx.datasets.catalogue import Catalogue
from gridx.datasets.router import router as datasets_router
from gridx.docs import install_docs
from gridx.downloads import router as downloads_router
from gridx.jobs import members, stats
from gridx.jobs.agent_router import router as agent_work_router
from gridx.jobs.board import Board
from gridx.jobs.dealing import deal
from gridx.jobs.gang_router import router as gang_router
from gridx.jobs.line import Line
from gridx.jobs.router import router as jobs_router
from gridx.jobs.stats_router import router as stats_router
from gridx.storage.base import ObjectStore
from gridx.storage.router import router as files_router
from gridx.storage.select import make_store

_DIST = Path(__file__).resolve().parents[2] / "frontend" / "dist"
_JOB_BODY_BYTES = 3 * 1024 * 1024


def create_app(settings: Settings | None = None, *, clock: Clock | None = None, store: ObjectStore | None = None) -> FastAPI:
    """The application. The database must be migrated; `gridx serve` does that first."""
    settings = settings or load_settings()
    app = FastAPI(title="Grid-X", version=_version(), lifespan=_lifespan, docs_url=None, redoc_url=None, responses=ERRORS)
    app.state.settings = settings
    app.state.clock = clock or SystemClock()
    app.state.database = Database(settings.sqlalchemy_url)
    app.state.store = store or make_store(settings, app.state.clock)
    app.state.catalogue = Catalogue(settings, app.state.database, app.state.store)
    app.state.presence = Presence(app.state.database, app.state.clock, settings.offline_after_s)
    app.state.line = Line(app.state.database, lambda waiting: deal(app.state.database, waiting, app.state.clock.now(), settings))
    app.state.rank_board = Board(app.state.database, lambda: _count_ranks(app))
    install_error_handlers(app)
    # Agents' routes before the jobs': DELETE /agent/{agent_id} must not swallow the fixed paths.
    for router in (
        accounts_router,
        agents_router,
        gang_router,
        agent_work_router,
        datasets_router,
        jobs_router,
        stats_router,
        files_router,
        downloads_router,
    ):
        app.router.routes.extend(router.routes)  # as they are: include_router would make each anew, at the first call of each app
    _add_operations(app)
    install_docs(app)
    _add_web_app(app, _DIST)
    if settings.cors_origin_list:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origin_list,
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.add_middleware(
        HttpGuard,
        streaming={
            "/datasets": settings.max_upload_bytes,
            "/datasets/uploads/": None,
            "/jobs/upload": settings.max_upload_bytes + _JOB_BODY_BYTES,
            "/files/": None,
            "/agent/upload_result": settings.max_update_bytes,
        },
        max_bytes=_JOB_BODY_BYTES,
        is_https=settings.public_url.startswith("https:"),
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    yield
    await to_thread.run_sync(app.state.line.close)
    await to_thread.run_sync(app.state.presence.close)
    await to_thread.run_sync(app.state.rank_board.close)
    app.state.database.dispose()


def _count_ranks(app: FastAPI) -> int:
    """As many as wait, when any rank is to be fetched: it is reserved for one of them, who has to look."""
    with app.state.database.read() as session:
        return app.state.rank_board.waiting if members.count_unfetched(session) else 0


def _add_operations(app: FastAPI) -> None:
    @app.get("/health", tags=["operations"])
    def health(database: DatabaseDep) -> dict[str, str]:
        """Answers 200 while the database can be reached, else 503."""
        with database.read() as session:
            session.execute(text("SELECT 1"))
        return {"status": "ok", "version": _version()}

    @app.get("/metrics", tags=["operations"], response_class=PlainTextResponse)
    def metrics(session: ReadSession, clock: ClockDep, settings: SettingsDep) -> PlainTextResponse:
        """Counts for Prometheus."""
        registry = CollectorRegistry()
        counts = stats.summary(session, clock.now(), settings.offline_after_s)
        agents = Gauge("gridx_agents", "Registered machines by state", ["state"], registry=registry)
        for state in ("idle", "busy", "offline"):
            agents.labels(state).set(getattr(counts.agents, state))
        jobs = Gauge("gridx_jobs", "Jobs by state", ["state"], registry=registry)
        for state in ("queued", "running", "completed", "failed"):
            jobs.labels(state).set(getattr(counts.jobs, state))
        Gauge("gridx_cores", "Cores of the machines online", registry=registry).set(counts.cores)
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")


def _add_web_app(app: FastAPI, dist: Path) -> None:
    """The built web app, where there is one: pages under `/` and `/app/...`, hashed assets for ever."""
    index = dist / "index.html"
    if not index.is_file():
        return
    app.mount("/assets", GZipMiddleware(_HashedFiles(directory=dist / "assets"), minimum_size=1000), name="assets")

    @app.get("/", include_in_schema=False)
    @app.get("/app", include_in_schema=False)
    @app.get("/app/{path:path}", include_in_schema=False)
    def page(request: Request) -> FileResponse:
        return FileResponse(index, headers={"Cache-Control": "no-cache"})


class _HashedFiles(StaticFiles):
    """Files whose names change with their contents: a browser may keep them for ever."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def _version() -> str:
    try:
        return version("gridx-backend")
    except PackageNotFoundError:
        return "0"
