"""The agent's settings: one object, built at start from the command line and the environment, and passed in."""

import argparse
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gridx_worker.controls import MOST_BUSY, WorkingHours, parse_hours
from gridx_worker.ddp.offer import BadOffer, Offer, read_offer
from gridx_worker.dependencies import PipSettings, read_allowed, read_pip_settings
from gridx_worker.images import IMAGE
from gridx_worker.sandbox.base import ProviderLimits

DEFAULT_SERVER = "http://127.0.0.1:8000"


class BadSetting(Exception):
    """A setting is missing or makes no sense; the message names it and says what to give."""


@dataclass(frozen=True)
class Config:
    server: str
    key: str | None
    """Enrolment key; needed only when there is no saved token, or when that is refused."""
    name: str
    """Agent id."""
    state_dir: Path
    """This agent's own folder: identity, cache, attempts."""
    sandbox: Literal["docker", "process"]
    python: Path | None
    """Interpreter of the process sandbox."""
    image: str
    limits: ProviderLimits
    heartbeat_s: float
    poll_s: float
    """Both used until the server's first reply, which sets the intervals."""
    cache_bytes: int
    warm_bytes: int
    pip: PipSettings
    accepts: Literal["all", "recipes"] = "all"
    """`recipes`: only jobs whose script is one of the server's own."""
    hours: WorkingHours | None = None
    most_busy: float | None = None
    """Share of the cores that others may use while the agent asks for work; None: it does not look."""
    disk_bytes: int | None = None
    ddp: Offer = field(default_factory=Offer)
    """What is offered for ranks of synchronous training."""
    ddp_certificate: Path | None = None
    """PEM of the certificates to trust when the orchestrator uses TLS; None: the system's."""


def build_config(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Config:
    """Command line first, then the environment, then defaults. Raises BadSetting."""
    name = arguments.name or environment.get("AGENT_ID") or default_name()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise BadSetting(f"the name {name!r} may hold up to 64 letters, digits, dots, dashes and underscores; give another with --name")
    base = Path(arguments.state_dir).expanduser() if arguments.state_dir else Path.home() / ".gridx-worker"
    server = arguments.server or environment.get("BACKEND_URL") or environment.get("COORDINATOR_URL") or DEFAULT_SERVER
    if not re.match(r"https?://[^/]", server):
        raise BadSetting(f"the server's address {server!r} must begin with http:// or https://; give it with --server")
    disk_mb = _number(arguments.disk_mb, environment, "WORKER_DISK_LIMIT", 0) or None
    cpus = _number(arguments.cpus, environment, "WORKER_CPU_LIMIT", 1.0)
    memory_mb = _number(arguments.memory_mb, environment, "WORKER_MEMORY_LIMIT", 2048)
    if cpus <= 0 or memory_mb < 256:
        raise BadSetting("give at least a part of a core (--cpus) and 256 MB of memory (--memory-mb): PyTorch does not start with less")
    return Config(
        server=server,
        key=_key(arguments, environment),
        name=name,
        state_dir=(base / name).resolve(),
        sandbox=arguments.sandbox,
        python=Path(arguments.python).expanduser() if arguments.python else None,
        image=arguments.image or environment.get("GRIDX_SANDBOX_IMAGE") or IMAGE,
        limits=ProviderLimits(cpus=cpus, memory_bytes=int(memory_mb) * 1024**2, gpu=_gpu(arguments.gpu or environment.get("WORKER_GPU"))),
        heartbeat_s=_number(None, environment, "WORKER_HEARTBEAT_INTERVAL", 10.0),
        poll_s=_number(None, environment, "WORKER_POLL_INTERVAL", 5.0),
        cache_bytes=int(_number(None, environment, "WORKER_CACHE_MB", disk_mb / 2 if disk_mb else 8192)) * 1024**2,
        warm_bytes=int(_number(None, environment, "WORKER_WARM_MB", 1024)) * 1024**2,
        pip=replace(
            read_pip_settings(Path(arguments.pip_config).expanduser() if arguments.pip_config else None, environment),
            allowed=_allowed(arguments.packages or environment.get("WORKER_PACKAGES")),
            cache_bytes=int(_number(None, environment, "WORKER_PACKAGES_MB", disk_mb / 4 if disk_mb else 8192)) * 1024**2,
        ),
        accepts=_accepts(arguments.accept or environment.get("WORKER_ACCEPT")),
        hours=_hours(arguments.hours or environment.get("WORKER_HOURS")),
        most_busy=_most_busy(arguments.only_when_idle, environment),
        disk_bytes=int(disk_mb) * 1024**2 if disk_mb else None,
        ddp=_ddp(arguments, environment),
        ddp_certificate=Path(environment["WORKER_DDP_CERT"]).expanduser() if environment.get("WORKER_DDP_CERT") else None,
    )


def default_name() -> str:
    """This machine's host name, reduced to what an agent id may hold."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname()).strip("-._")[:64]
    return name or "agent"


def _key(arguments: argparse.Namespace, environment: Mapping[str, str]) -> str | None:
    if arguments.key:
        return str(arguments.key).strip()
    file = arguments.key_file or environment.get("GRIDX_KEY_FILE")
    if file:
        try:
            return Path(file).expanduser().read_text(encoding="utf-8").strip() or None
        except OSError as error:
            raise BadSetting(f"the key file {file} cannot be read: {error.strerror}") from error
    return environment.get("GRIDX_KEY", "").strip() or None


def _accepts(text: str | None) -> Literal["all", "recipes"]:
    match text:
        case None | "" | "all":
            return "all"
        case "recipes":
            return "recipes"
        case _:
            raise BadSetting(f"--accept {text!r} (or WORKER_ACCEPT) is neither all nor recipes")


def _hours(text: str | None) -> WorkingHours | None:
    try:
        return parse_hours(text) if text else None
    except ValueError as error:
        raise BadSetting(f"--hours (or WORKER_HOURS): {error}") from error


def _most_busy(given: bool, environment: Mapping[str, str]) -> float | None:
    text = environment.get("WORKER_ONLY_WHEN_IDLE", "").strip().lower()
    if not given and text in ("", "0", "no", "false", "off"):
        return None
    percent = _number(None, environment, "WORKER_IDLE_PERCENT", MOST_BUSY * 100)
    return min(percent, 100.0) / 100


def _ddp(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Offer:
    try:
        return read_offer(arguments, environment, arguments.sandbox)
    except BadOffer as error:
        raise BadSetting(str(error)) from error


def _gpu(text: str | None) -> str | None:
    if text and not re.fullmatch(r"\d{1,3}|GPU-[0-9a-fA-F-]{8,64}", text):
        raise BadSetting(f"--gpu {text!r} is neither a GPU's index nor its UUID, as `nvidia-smi -L` lists them; one agent offers one GPU")
    return text or None


def _allowed(text: str | None) -> frozenset[str] | None:
    """A list of packages, or a file that holds one."""
    if not text:
        return None
    try:
        file = Path(text).expanduser()
        return read_allowed(file.read_text(encoding="utf-8") if file.is_file() else text)
    except (OSError, ValueError) as error:
        raise BadSetting(f"the list of packages {text!r} cannot be read: {error}") from error


def _number(given: float | None, environment: Mapping[str, str], name: str, default: float) -> float:
    if given is not None:
        return float(given)
    text = environment.get(name, "").strip()
    if not text:
        return float(default)
    try:
        number = float(text)
    except ValueError as error:
        raise BadSetting(f"{name}={text!r} is not a number") from error
    if not 0 < number < 1e9:
        raise BadSetting(f"{name}={text!r} must be above zero")
    return number
