"""`gridx-worker run | build-image | doctor`."""

import argparse
import logging
import os
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import docker
import docker.errors
from rich.console import Console

from gridx_worker import __version__, logs
from gridx_worker.agent import Agent, CannotRun
from gridx_worker.client import Client
from gridx_worker.config import BadSetting, Config, build_config
from gridx_worker.dependencies import read_pip_settings
from gridx_worker.images import IMAGE, BuildFailed, BuildOptions, build_image, image_id
from gridx_worker.sandbox.base import Sandbox, SandboxUnavailable
from gridx_worker.sandbox.container import find_problems
from gridx_worker.sandbox.docker import DockerSandbox, ImageMissing
from gridx_worker.sandbox.process import ProcessSandbox
from gridx_worker.state import AlreadyRunning, State

WARNING = (
    "The process sandbox has no walls: scripts run as you, and can read your files and use your network. "
    "Use it for your own code only; strangers' jobs belong into the docker sandbox."
)
NO_DOCKER = (
    "Docker does not answer ({cause}).\n"
    "Install Docker and start it (then `gridx-worker doctor` tells whether all is well). "
    "For your own code only, `--sandbox process` works without it."
)
console = Console(stderr=True, highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> NoReturn:
    parser = build_parser()
    given = parser.parse_args(arguments)
    try:
        logs.set_up(os.environ.get("WORKER_LOG_LEVEL") or "INFO")
        code: int = given.command(given)
    except (BadSetting, CannotRun, SandboxUnavailable, AlreadyRunning, BuildFailed, ValueError) as error:
        console.print(f"gridx-worker: {error}", style="bold red", markup=False)
        code = 1
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gridx-worker", description="Offers this machine's idle time to Grid-X training jobs.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="register, then work until stopped")
    _add_common(run)
    run.add_argument("--key", help="enrolment key (or GRIDX_KEY); needed the first time only")
    run.add_argument("--key-file", help="file with the enrolment key (or GRIDX_KEY_FILE)")
    run.set_defaults(command=run_agent)

    build = commands.add_parser("build-image", help=f"build the sandbox image {IMAGE}")
    build.add_argument("--base", help="image to start from (or GRIDX_BASE_IMAGE; default python:3.11-slim)")
    build.add_argument("--wheels", help="folder of wheels to use before any download (or GRIDX_WHEELS, or a folder in PIP_FIND_LINKS)")
    build.add_argument("--ca", help="PEM file of certificates pip shall trust (or PIP_CERT)")
    build.add_argument("--pip-args", help="further arguments for pip (or GRIDX_PIP_ARGS)")
    build.add_argument("--image", default=IMAGE, help=f"name of the result (default {IMAGE})")
    build.set_defaults(command=run_build)

    doctor = commands.add_parser("doctor", help="check Docker, the image and the server")
    _add_common(doctor)
    doctor.set_defaults(command=run_doctor, key=None, key_file=None)
    return parser


def run_agent(given: argparse.Namespace) -> int:
    config = build_config(given)
    state = State(config.state_dir)
    try:
        agent = Agent(config, _sandbox(config, state), state)
        agent.handle_signals()
        agent.run()
    finally:
        state.close()
    return 0


def run_build(given: argparse.Namespace) -> int:
    settings = read_pip_settings(None, os.environ)
    folders = [given.wheels, os.environ.get("GRIDX_WHEELS"), *(place for place in settings.find_links if Path(place).is_dir())]
    wheels = next((folder for folder in folders if folder), None)
    options = BuildOptions(
        base=given.base or os.environ.get("GRIDX_BASE_IMAGE") or None,
        wheels=Path(wheels).expanduser() if wheels else None,
        ca=Path(given.ca).expanduser() if given.ca else settings.cert,
        pip_arguments=given.pip_args or os.environ.get("GRIDX_PIP_ARGS", ""),
    )
    _build(options, given.image)
    return 0


def run_doctor(given: argparse.Namespace) -> int:
    """One line per check; exit code 1 when one failed."""
    # A folder of its own: with an agent's folder it would take that agent's running sandboxes for leftovers.
    with tempfile.TemporaryDirectory(prefix="gridx-doctor-") as folder:
        checks = _check(replace(build_config(given), state_dir=Path(folder)))
    for name, problem in checks:
        console.print(f"{'FAILED' if problem else 'ok':7}{name}{': ' + problem if problem else ''}", markup=False)
    return 1 if any(problem for _, problem in checks) else 0


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", help="address of the Grid-X server (or BACKEND_URL; default http://127.0.0.1:8000)")
    parser.add_argument("--name", help="this agent's id (or AGENT_ID; default the host name)")
    parser.add_argument("--sandbox", choices=("docker", "process"), default="docker", help="process is for your own code only")
    parser.add_argument("--python", help="interpreter of the process sandbox (default: this one)")
    parser.add_argument("--state-dir", help="where agents keep their state (default ~/.gridx-worker); one folder per name in it")
    parser.add_argument("--cpus", type=float, help="cores for one attempt (or WORKER_CPU_LIMIT; default 1)")
    parser.add_argument("--memory-mb", type=float, help="memory for one attempt in MB (or WORKER_MEMORY_LIMIT; default 2048)")
    parser.add_argument("--image", help=f"sandbox image (or GRIDX_SANDBOX_IMAGE; default {IMAGE})")
    parser.add_argument("--pip-config", help="pip configuration file that says where packages come from (or pip's own variables)")


def _check(config: Config) -> list[tuple[str, str | None]]:
    """What was looked at, and what is wrong with it if anything is."""
    checks: list[tuple[str, str | None]] = []
    if config.sandbox == "docker":
        try:
            client = docker.from_env(timeout=30)
            problems = find_problems(client)
            checks.append(("Docker answers", None))
            checks.append(("Docker enforces all limits", "; ".join(problems) or None))
            missing = None if image_id(client, config.image) else "missing; run `gridx-worker build-image`"
            checks.append((f"image {config.image}", missing))
        except docker.errors.DockerException as error:
            checks.append(("Docker answers", _first_line(error)))
    try:
        if not any(problem for _, problem in checks):
            info = _new_sandbox(config).prepare()
            checks.append((f"sandbox: Python {info.python_version}, torch {info.versions.get('torch', 'none')}", None))
    except SandboxUnavailable as error:
        checks.append((f"{config.sandbox} sandbox", str(error)))
    client = Client(config.server, stop=threading.Event())
    checks.append((f"server {config.server}", client.reachable()))
    client.close()
    return checks


def _sandbox(config: Config, state: State) -> Sandbox:
    """The sandbox that was asked for; offers to build a missing image when a person is there to answer."""
    sandbox = _new_sandbox(config)
    if isinstance(sandbox, ProcessSandbox):
        console.print(WARNING, style="bold yellow")
        return sandbox
    try:
        sandbox.prepare()
    except ImageMissing as error:
        if not sys.stdin.isatty():
            raise
        answer = console.input(f"{error}. Build it now? This takes some minutes. [Y/n] ", markup=False)
        if answer.strip().lower() not in ("", "y", "yes"):
            raise
        _build(BuildOptions(ca=config.pip.cert), config.image)
    return sandbox


def _new_sandbox(config: Config) -> DockerSandbox | ProcessSandbox:
    if config.sandbox == "process":
        return ProcessSandbox(folder=config.state_dir, limits=config.limits, python=config.python)
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except docker.errors.DockerException as error:
        raise SandboxUnavailable(NO_DOCKER.format(cause=_first_line(error))) from error
    return DockerSandbox(
        client, agent_id=config.name, folder=config.state_dir, limits=config.limits, image=config.image, pip=config.pip,
        warm_bytes=config.warm_bytes,
    )  # fmt: skip


def _build(options: BuildOptions, tag: str) -> None:
    try:
        client = docker.from_env(timeout=3600)
        for line in build_image(client, options, tag=tag):
            console.print(line, markup=False)
    except docker.errors.DockerException as error:
        raise SandboxUnavailable(NO_DOCKER.format(cause=_first_line(error))) from error
    console.print(f"built {tag}", style="bold green")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


if __name__ == "__main__":
    logging.captureWarnings(True)
    main()
