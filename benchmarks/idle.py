"""A thousand idle agents on one API process, and how soon two hundred of them have work once it exists.

    python benchmarks/idle.py [--agents 1000] [--subtasks 200] [--seconds 60]

A private PostgreSQL and a `gridx serve --no-background` of its own, on loopback. The agents live in another process and speak HTTP as the
worker does: each holds a call for work open, and its heartbeat rests meanwhile. The job is dealt to its chunks by the product's own
background step, in this process; the clock starts just before the commit that makes its subtasks. The limit is the same server program
(uvicorn) with an application that knows the answers: no database, no checks.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import httpx
import psutil
from pydantic import SecretStr
from sqlalchemy import event, func, insert, select, text, update

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._crowd import Crowd, serve_bare
from gridx.accounts import service as accounts
from gridx.accounts.models import User
from gridx.agents.models import Agent, EnrolmentKey
from gridx.background.prepare import prepare_next
from gridx.background.work import Work
from gridx.core.clock import SystemClock
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.core.tokens import hash_secret
from gridx.jobs.models import Attempt, Subtask
from gridx.storage.local import LocalStore
from tests.e2e.platform import free_port
from tests.support import databases, postgres, session

SECRET = "0123456789abcdef" * 4
TARGET_CORES, TARGET_MS = 1 / 3, 300.0
SCRIPT = "import torch\ntorch.save({'w': torch.ones(2)}, 'model.pth')\n"


@dataclass
class Measured:
    cores: float
    calls_per_s: float
    latencies_ms: list[float]

    def at(self, share: float) -> float:
        return sorted(self.latencies_ms)[min(len(self.latencies_ms) - 1, int(share * len(self.latencies_ms)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--subtasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        serve_bare(args.bare)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started here ends as well
    session.begin()
    try:
        with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
            limit = measure_bare(args.agents, args.subtasks, args.seconds)
            ours = measure_ours(Path(name), args.agents, args.subtasks, args.seconds)
    finally:
        postgres.stop()
        session.end()
    show(args, ours, limit)


def show(args: argparse.Namespace, ours: Measured, limit: Measured) -> None:
    versions = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "fastapi", "sqlalchemy", "psycopg"))
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Python {sys.version.split()[0]}, {versions}")
    print(f"{args.agents} idle agents for {args.seconds:g} s, {ours.calls_per_s:.0f} calls a second; then {args.subtasks} subtasks\n")
    print(f"{'':44} {'ours':>9} {'limit':>9} {'ratio':>7} {'target':>8}")
    rows = [
        ("idle: cores of the API process", ours.cores, limit.cores, TARGET_CORES),
        ("work exists -> agent has it: p50, ms", ours.at(0.5), limit.at(0.5), None),
        ("work exists -> agent has it: p99, ms", ours.at(0.99), limit.at(0.99), TARGET_MS),
        ("work exists -> the last agent has it, ms", ours.at(1.0), limit.at(1.0), None),
    ]
    for what, mine, best, target in rows:
        words = "" if target is None else f"{target:8.2f}"
        print(f"{what:44} {mine:9.3f} {best:9.3f} {mine / best:7.1f} {words}")
    if ours.cores >= TARGET_CORES or ours.at(0.99) >= TARGET_MS:
        print("\nover the target")


def measure_ours(folder: Path, agents: int, subtasks: int, seconds: float) -> Measured:
    url, home, port = databases.create("postgresql", folder), folder / "home", free_port()
    postgres.cluster().run("ALTER SYSTEM SET autovacuum = off")  # it writes as well
    postgres.cluster().run("SELECT pg_reload_conf()")
    database = Database(url)
    tokens = fill(database, agents)
    env = {**os.environ, "DATABASE_URL": url, "GRIDX_HOME": str(home), "JWT_SECRET_KEY": SECRET, "GRIDX_LOG_LEVEL": "INFO"}
    command = [str(Path(sys.executable).with_name("gridx")), "serve", "--no-background", "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        until_up(port)
        api = next(child for child in psutil.Process(server.pid).children(recursive=True) if "gridx.serve_api" in child.cmdline())
        with database.write() as opened:  # the machines registered just now, however long the server took to start
            opened.execute(update(Agent).values(last_seen_at=datetime.now(UTC)))
        with Crowd(port, tokens) as crowd:
            crowd.warm_up()
            before = counters(database)
            cores, calls = crowd.idle(api, seconds)
            show_writes(before, counters(database), seconds)
            began = make_job(port, url, home, folder, subtasks)
            found = crowd.wait_for(subtasks)
        check(database, found, subtasks)
        return Measured(cores, calls, [(at - began) * 1000 for _, at in found])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        database.dispose()


def measure_bare(agents: int, subtasks: int, seconds: float) -> Measured:
    port = free_port()
    server = subprocess.Popen([sys.executable, __file__, "--bare", str(port)], start_new_session=True)
    try:
        until_up(port)
        with Crowd(port, [f"token-{index}" for index in range(agents)]) as crowd:
            crowd.warm_up()
            cores, calls = crowd.idle(psutil.Process(server.pid), seconds)
            began = time.monotonic()
            httpx.post(f"http://127.0.0.1:{port}/release", params={"count": subtasks})
            return Measured(cores, calls, [(at - began) * 1000 for _, at in crowd.wait_for(subtasks)])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def counters(database: Database) -> dict[str, int]:
    """Rows written so far, by table, and transactions that wrote."""
    rows = "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
    writers = "SELECT 'writers', pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    with database.read() as opened:
        return {name: int(count) for name, count in opened.execute(text(f"{rows} UNION ALL {writers}"))}


def show_writes(before: dict[str, int], after: dict[str, int], seconds: float) -> None:
    written = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    writers, seen = written.pop("writers", 0), written.pop("agents", 0)
    print(f"{seconds:g} s: {writers} writing transactions (a batch comes every 10 s), {seen} times seen; other tables: {written or 'none'}")
    if written or writers > seconds / 10 + 1:
        print("writes beyond the batch")


def make_job(port: int, url: str, home: Path, folder: Path, chunks: int) -> float:
    """A job of so many chunks, ready to be trained. Returns when the commit that made its subtasks was sent (monotonic)."""
    base, person = f"http://127.0.0.1:{port}", {"email": "buyer@example.com", "password": "correct horse", "role": "buyer"}
    httpx.post(f"{base}/auth/register", json=person, timeout=60).raise_for_status()
    token = httpx.post(f"{base}/auth/login", json=person, timeout=60).json()["access_token"]
    database, clock = Database(url), SystemClock()
    with database.write() as opened:
        accounts.grant(opened, email="buyer@example.com", amount=chunks, reason="bench", reference="grant:bench", now=clock.now())
    files = {"file_code": ("train.py", SCRIPT), "file_data": ("data.csv", b"x,y\n" + b"1,2\n" * (5 * chunks))}
    headers = {"Authorization": f"Bearer {token}"}
    httpx.post(f"{base}/jobs/upload", data={"title": "t", "chunks": chunks}, files=files, headers=headers, timeout=60).raise_for_status()
    settings = Settings(home=home, jwt_secret_key=SecretStr(SECRET), database_url=url, _env_file=None)  # pyright: ignore[reportCallIssue]
    committed = list[float]()
    event.listen(database.engine, "commit", lambda _connection: committed.append(time.monotonic()))
    with ThreadPoolExecutor(1) as executor:
        work = Work(settings, database, LocalStore(home / "objects", SECRET), clock, executor)
        prepare_next(work)
        work.keeper.close()
    database.dispose()
    return committed[-1]


def check(database: Database, found: list[tuple[int, float]], subtasks: int) -> None:
    twice = [task for task, count in Counter(task for task, _ in found).items() if count > 1]
    with database.read() as opened:
        attempts = opened.scalar(select(func.count()).select_from(Attempt))
        running = opened.scalar(select(func.count()).select_from(Subtask).where(Subtask.status == "RUNNING"))
    if twice or attempts != subtasks or running != subtasks or len(found) != subtasks:
        sys.exit(f"not each once: {attempts} attempts, {running} running, {len(found)} answers, {len(twice)} given twice")
    print(f"{subtasks} subtasks: each claimed once")


def fill(database: Database, agents: int) -> list[str]:
    """A seller with so many machines. Returns their tokens."""
    now, tokens = datetime.now(UTC), [f"gxa_{index:05}" for index in range(agents)]
    seller = {"email": "seller@example.com", "role": "seller", "password_hash": "x", "token_epoch": 0, "is_disabled": False}
    with database.write() as opened:
        owner = opened.execute(insert(User).returning(User.id), [{**seller, "created_at": now}]).scalar_one()
        key = {"owner_id": owner, "label": "k", "key_hash": "k", "created_at": now}
        key_id = opened.execute(insert(EnrolmentKey).returning(EnrolmentKey.id), [key]).scalar_one()
        machine = {"owner_id": owner, "key_id": key_id, "hardware": {"cores": 4}, "ram_bytes": 2**34, "gpu_count": 0, "vram_bytes": 0}
        seen = {"registered_at": now, "last_seen_at": now}
        opened.execute(
            insert(Agent), [{"id": f"agent-{n}", "token_hash": hash_secret(token), **machine, **seen} for n, token in enumerate(tokens)]
        )
    return tokens


def until_up(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            httpx.get(f"http://127.0.0.1:{port}/health", timeout=2)
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    sys.exit("the server does not answer")


if __name__ == "__main__":
    main()
