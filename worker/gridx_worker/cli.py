"""`gridx-worker run | build-image | doctor | install | stop | uninstall`."""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import docker
import docker.errors
from rich.console import Console

from gridx_worker import __version__, logs, service
from gridx_worker.agent import Agent, CannotRun, Lanes
from gridx_worker.config import BadSetting, Config, build_config, default_name
from gridx_worker.dependencies import read_pip_settings
from gridx_worker.doctor.checks import examine
from gridx_worker.doctor.report import Check, save
from gridx_worker.images import IMAGE, BuildFailed, BuildOptions, build_image
from gridx_worker.sandbox.base import Sandbox, SandboxUnavailable
from gridx_worker.sandbox.docker import DockerSandbox, ImageMissing
from gridx_worker.sandbox.process import ProcessSandbox
from gridx_worker.service import ServiceFailed
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
        logs.set_up(os.environ.get("WORKER_LOG_LEVEL") or "INFO", console)
        code: int = given.command(given)
    except (BadSetting, CannotRun, SandboxUnavailable, AlreadyRunning, BuildFailed, ServiceFailed, ValueError) as error:
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
    _add_key(run)
    run.set_defaults(command=run_agent)

    build = commands.add_parser("build-image", help=f"build the sandbox image {IMAGE}")
    build.add_argument("--base", help="image to start from (or GRIDX_BASE_IMAGE; default python:3.11-slim)")
    build.add_argument("--wheels", help="folder of wheels to use before any download (or GRIDX_WHEELS, or a folder in PIP_FIND_LINKS)")
    build.add_argument("--ca", help="PEM file of certificates pip shall trust (or PIP_CERT)")
    build.add_argument("--pip-args", help="further arguments for pip (or GRIDX_PIP_ARGS)")
    build.add_argument("--image", default=IMAGE, help=f"name of the result (default {IMAGE})")
    build.set_defaults(command=run_build)

    doctor = commands.add_parser("doctor", help="check this machine, try to break out of its sandbox, and measure how fast it trains")
    _add_common(doctor)
    doctor.set_defaults(command=run_doctor, key=None, key_file=None)

    install = commands.add_parser("install", help="run as a systemd service of this user, also after a reboot")
    _add_common(install)
    _add_key(install)
    install.set_defaults(command=run_install)

    stop = commands.add_parser("stop", help="end the running agent after its task")
    stop.add_argument("--now", action="store_true", help="do not wait for the task in hand; the server gives it to another machine")
    uninstall = commands.add_parser("uninstall", help="take the service, containers, image and state away again")
    uninstall.add_argument("--keep-image", action="store_true", help="leave the sandbox image")
    uninstall.add_argument("--image", help=f"sandbox image (or GRIDX_SANDBOX_IMAGE; default {IMAGE})")
    for each, command in ((stop, run_stop), (uninstall, run_uninstall)):
        each.add_argument("--name", help="the agent's id (or AGENT_ID; default the host name)")
        each.add_argument("--state-dir", help="where agents keep their state (default ~/.gridx-worker)")
        each.set_defaults(command=command)
    return parser


def run_agent(given: argparse.Namespace) -> int:
    config = build_config(given)
    state = State(config.state_dir)
    try:
        sandbox = _sandbox(config, state)
        agent = Agent(config, sandbox, state, console=console, lanes=_lanes(config, state))
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
    """One line per check, a verdict, exit code 1 when one failed. The running agent takes what was found to the server."""
    config = build_config(given)
    findings = examine(config, _new_sandbox, _print_check)
    save(findings, config.state_dir)
    failed = sum(check.problem is not None for check in findings.checks)
    if failed:
        console.print(f"{failed} of {len(findings.checks)} checks failed", style="bold red", markup=False)
        return 1
    words = (
        "this machine can be lent" if config.sandbox == "docker" else "this machine can run your own jobs; for strangers' it needs Docker"
    )
    console.print(f"all is well: {words}", style="bold green", markup=False)
    return 0


def run_install(given: argparse.Namespace) -> int:
    config = build_config(given)
    arguments = ["--server", config.server, "--name", config.name, "--state-dir", str(config.state_dir.parent), "--sandbox", config.sandbox]
    for option in (
        "python", "cpus", "memory_mb", "disk_mb", "image", "pip_config", "packages", "gpu", "accept", "hours",
        "ddp_slots", "ddp_network", "ddp_address", "ddp_ports", "ddp_docker_network",
    ):  # fmt: skip
        if (value := getattr(given, option)) is not None:
            arguments += [f"--{option.replace('_', '-')}", str(value)]
    arguments += ["--only-when-idle"] if given.only_when_idle else []
    path = service.write_unit(config.name, arguments, config.key, config.state_dir)
    console.print(f"wrote {path}", markup=False)
    for advice in service.start(config.name):
        console.print(advice, style="yellow", markup=False)
    console.print(f"started; `journalctl --user -f -u {path.stem}` shows what it does", markup=False)
    return 0


def run_uninstall(given: argparse.Namespace) -> int:
    base = Path(given.state_dir).expanduser() if given.state_dir else Path.home() / ".gridx-worker"
    image = None if given.keep_image else given.image or os.environ.get("GRIDX_SANDBOX_IMAGE") or IMAGE
    service.uninstall(
        given.name or os.environ.get("AGENT_ID") or default_name(), base, image=image, say=lambda line: console.print(line, markup=False)
    )
    return 0


def run_stop(given: argparse.Namespace) -> int:
    base = Path(given.state_dir).expanduser() if given.state_dir else Path.home() / ".gridx-worker"
    name = given.name or os.environ.get("AGENT_ID") or default_name()
    console.print(service.stop((base / name).resolve(), now=given.now), markup=False)
    return 0


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", help="enrolment key (or GRIDX_KEY); needed the first time only")
    parser.add_argument("--key-file", help="file with the enrolment key (or GRIDX_KEY_FILE)")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", help="address of the Grid-X server (or BACKEND_URL; default http://127.0.0.1:8000)")
    parser.add_argument("--name", help="this agent's id (or AGENT_ID; default the host name)")
    parser.add_argument("--sandbox", choices=("docker", "process"), default="docker", help="process is for your own code only")
    parser.add_argument("--python", help="interpreter of the process sandbox (default: this one)")
    parser.add_argument("--state-dir", help="where agents keep their state (default ~/.gridx-worker); one folder per name in it")
    parser.add_argument("--cpus", type=float, help="cores for one attempt (or WORKER_CPU_LIMIT; default 1)")
    parser.add_argument("--memory-mb", type=float, help="memory for one attempt in MB (or WORKER_MEMORY_LIMIT; default 2048)")
    parser.add_argument("--disk-mb", type=float, help="disk for inputs and packages in MB (or WORKER_DISK_LIMIT; default 16384)")
    parser.add_argument("--gpu", help="index or UUID of the one GPU to offer (or WORKER_GPU; default none)")
    parser.add_argument("--image", help=f"sandbox image (or GRIDX_SANDBOX_IMAGE; default {IMAGE})")
    parser.add_argument("--pip-config", help="pip configuration file that says where packages come from (or pip's own variables)")
    parser.add_argument("--packages", help="the only packages to install: a list, or a file that holds one (or WORKER_PACKAGES)")
    parser.add_argument("--accept", help="recipes: only jobs whose script is the server's own (or WORKER_ACCEPT; default all)")
    parser.add_argument("--hours", help="when to work, such as 'Mon-Fri 18:00-8:00, Sat-Sun' (or WORKER_HOURS; default always)")
    parser.add_argument("--ddp-slots", help="ranks of synchronous training to run at the same time (or WORKER_DDP_SLOTS; default 0)")
    parser.add_argument("--ddp-network", help="name of a network whose agents train together, between machines (or WORKER_DDP_NETWORK)")
    parser.add_argument("--ddp-address", help="this machine's address in it (or WORKER_DDP_ADDRESS)")
    parser.add_argument("--ddp-ports", help="ports that ranks may listen on (or WORKER_DDP_PORTS; default 29500-29563)")
    parser.add_argument("--ddp-docker-network", help="Docker's network for ranks: host, or a name (or WORKER_DDP_DOCKER_NETWORK)")
    parser.add_argument("--only-when-idle", action="store_true", help="take work only while others use little of this machine")


def _print_check(check: Check) -> None:
    console.print(f"{'FAILED' if check.problem else 'ok':7}{check.name}{': ' + check.problem if check.problem else ''}", markup=False)
    if check.problem and check.fix:
        console.print(f"       -> {check.fix}", markup=False)


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


def _lanes(config: Config, state: State) -> Lanes | None:
    """The slots for ranks, where any are offered. Raises BadSetting when what they need is not installed."""
    if config.ddp.slots == 0 or config.accepts == "recipes":
        return None
    try:
        from gridx_worker.ddp.build import make_lanes  # brings grpc, the extra `ddp`
    except ImportError as error:
        install = f"{sys.executable} -m pip install grpcio protobuf"
        raise BadSetting(f"--ddp-slots needs grpcio ({error}); install it beside the worker: {install}") from error
    return make_lanes(config, state.folder)


def _new_sandbox(config: Config) -> DockerSandbox | ProcessSandbox:
    if config.sandbox == "process":
        return ProcessSandbox(folder=config.state_dir, limits=config.limits, python=config.python, pip=config.pip)
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
