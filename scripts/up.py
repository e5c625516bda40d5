"""make up, make dev: the platform on this machine with one agent, until Ctrl-C.

    python scripts/up.py [--host 127.0.0.1] [--port 8000] [--sandbox docker|process] [--no-agent] [--dev]

Its data lies in GRIDX_HOME (default ./var) and stays. The agent belongs to a seller account of its own, made at the first start;
--dev restarts the server when a source file changes, and runs Vite on port 3000 when frontend/ is there.
"""

import argparse
import contextlib
import json
import os
import secrets
import sys
import time
from pathlib import Path

import httpx
from dotenv import dotenv_values

from local_platform import BIN, ROOT, Processes, Trouble, agent_command, docker_problem, running, wait_until_healthy

EMAIL = "this-machine@example.com"
AGENT = "this-machine"


def main() -> int:
    parser = argparse.ArgumentParser(description="The Grid-X platform on this machine with one agent.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sandbox", choices=["docker", "process"], default="docker")
    parser.add_argument("--no-agent", action="store_true")
    parser.add_argument("--dev", action="store_true")
    options = parser.parse_args()
    home = Path(os.environ.get("GRIDX_HOME") or dotenv_values(ROOT / ".env").get("GRIDX_HOME") or ROOT / "var").resolve()
    try:
        with running(home / "logs") as processes:
            run(processes, home, options)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


def run(processes: Processes, home: Path, options: argparse.Namespace) -> None:
    local = f"http://127.0.0.1:{options.port}"
    if answers(local):
        raise Trouble(f"something answers on {local} already; end it, or give another port: make up UP_ARGS='--port 8001'")
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "GRIDX_HOME": str(home)}
    serve = [str(BIN / "gridx"), "serve", "--host", options.host, "--port", str(options.port)]
    if options.dev:
        sources = [str(ROOT / "backend" / "gridx"), str(ROOT / "protocol" / "gridx_protocol")]
        serve = [str(BIN / "watchfiles"), "--filter", "python", "--target-type", "command", " ".join(serve), *sources]
    processes.start("server", serve, env=env, to_terminal=True)
    wait_until_healthy(local, processes)
    if not options.no_agent:
        start_agent(processes, home, local, options)
    if options.dev and (ROOT / "frontend" / "package.json").exists():
        npm = [str(ROOT / "scripts" / "with-node"), "npm", "run", "dev", "--", "--port", "3000"]
        processes.start("vite", npm, env=env, cwd=ROOT / "frontend", to_terminal=True)
        print("\nWith reload: http://127.0.0.1:3000")
    print(f"\nGrid-X is on {local} - Ctrl-C ends it. Data and logs: {home}\n", flush=True)
    while (ended := processes.ended()) is None:
        time.sleep(0.5)
    raise Trouble(f"{ended}; the rest was stopped with it")


def start_agent(processes: Processes, home: Path, server: str, options: argparse.Namespace) -> None:
    """One agent of this machine, or a sentence on why there is none: the platform is of use without it."""
    if options.sandbox == "docker" and (problem := docker_problem()):
        print(
            f"\nNo agent was started: {problem}.\n"
            "Every job submitted here will wait for one. Where all code is your own, an agent without containers will do:\n"
            "    make up UP_ARGS='--sandbox process'",
            flush=True,
        )
        return
    try:
        key = agent_key(home, server)
    except Trouble as trouble:
        print(f"\nNo agent was started: {trouble}", flush=True)
        return
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "GRIDX_KEY": key}
    processes.start("agent", agent_command(server, AGENT, home / "agents", options.sandbox), env=env)
    print(f"\nAn agent of this machine runs in the {options.sandbox} sandbox; what it says is in {processes.log('agent')}", flush=True)


def agent_key(home: Path, server: str) -> str:
    """The enrolment key of this machine's own seller account; both are made at the first start and kept, readable by the owner only."""
    file = home / "this-machine.json"
    if file.exists():
        return str(json.loads(file.read_text())["key"])
    password = secrets.token_urlsafe(24)
    with httpx.Client(base_url=server, timeout=30) as client:
        credentials = {"email": EMAIL, "password": password}
        made = client.post("/auth/register", json={**credentials, "role": "seller"})
        if not made.is_success:
            raise Trouble(
                f"its account {EMAIL} could not be registered ({made.status_code}: {made.text[:200]}). "
                "Make a key in the web app and run: gridx-worker run --server URL --key KEY"
            )
        login = client.post("/auth/login", json=credentials)
        login.raise_for_status()
        bearer = {"Authorization": f"Bearer {login.json()['access_token']}"}
        reply = client.post("/agent/keys", json={"label": AGENT}, headers=bearer)
        reply.raise_for_status()
    file.touch(0o600)
    file.write_text(json.dumps({**credentials, "key": reply.json()["key"]}))
    return str(reply.json()["key"])


def answers(server: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        httpx.get(f"{server}/health", timeout=1)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
