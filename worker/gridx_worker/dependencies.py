"""Installs a job's requirements for a sandbox: resolve inside it first, look at what pip would fetch, then install exactly that.

Wheels only, so that nothing of a package runs while it is installed. Results are cached per (requirements, sandbox); the least recently
used go when they take more than the provider's budget.
"""

import configparser
import hashlib
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gridx_worker.sandbox.base import DependenciesFailed, OutOfTime, PackageNotAllowed, StopSwitch

log = logging.getLogger(__name__)

MAX_REPORT_BYTES = 64 * 1024**2
MAX_PACKAGES = 150
CACHE_BYTES = 8 * 1024**3
EMPTY = "nothing-to-install"


@dataclass(frozen=True)
class PipSettings:
    """Where this provider's machine takes packages from. Empty: pip's own defaults."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    """Folders or addresses."""
    cert: Path | None = None
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
    allowed: frozenset[str] | None = None
    """The only packages that this provider's machine installs, by canonical name; None: any."""
    cache_bytes: int = CACHE_BYTES
    """What installed packages may take on disk before the least recently used go."""


@dataclass(frozen=True)
class PipResult:
    exit_code: int
    output: str


class Pip(Protocol):
    """A pip inside a sandbox with network access; `folder` is the only place where it may write."""

    def inside(self, folder: Path) -> str:
        """What `folder` is called where pip runs."""
        ...

    def run(self, arguments: Sequence[str], folder: Path, *, until: float, cap_bytes: int, stop: StopSwitch) -> PipResult:
        """Runs `pip install` with these arguments. Raises TimeoutError at `until`, DependenciesFailed past `cap_bytes`, Stopped."""
        ...


def read_pip_settings(file: Path | None, environment: Mapping[str, str]) -> PipSettings:
    """From a pip configuration file ([global] section) and pip's own environment variables; the latter win."""
    values: dict[str, str] = {}
    if file:
        parser = configparser.RawConfigParser()
        parser.read_string(file.read_text(encoding="utf-8"))
        if parser.has_section("global"):
            values = dict(parser.items("global"))
    for name in ("index-url", "extra-index-url", "find-links", "cert", "trusted-host", "no-index"):
        value = environment.get("PIP_" + name.upper().replace("-", "_"))
        if value:
            values[name] = value
    return PipSettings(
        index_url=values.get("index-url") or None,
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        cert=Path(values["cert"]) if values.get("cert") else None,
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        no_index=values.get("no-index", "").strip().lower() in ("1", "true", "yes", "on"),
    )


def read_allowed(text: str) -> frozenset[str]:
    """Canonical names from a provider's list: separated by commas, spaces or lines; what follows a # in a line is left out."""
    lines = [line.split("#", 1)[0] for line in text.splitlines()]
    return frozenset(canonicalize_name(name) for line in lines for name in line.replace(",", " ").split())


def install(
    requirements: Sequence[str],
    pip: Pip,
    *,
    cache: Path,
    sandbox_key: str,
    installed: Mapping[str, str],
    cap_s: float,
    cap_bytes: int,
    deadline: float,
    stop: StopSwitch,
    settings: PipSettings,
) -> Path | None:
    """The folder of packages that the sandbox does not have yet, None when it has all. `installed` are its versions by name.

    Raises DependenciesFailed with words for the buyer, PackageNotAllowed, OutOfTime at the attempt's deadline, Stopped.
    """
    lines = check_lines(requirements)
    if not lines:
        return None
    check_torch(lines, installed.get("torch"))
    here = {canonicalize_name(name) for name in installed}
    _check_allowed((Requirement(line).name for line in lines), settings.allowed, here)
    key = hashlib.sha256("\n".join([*lines, sandbox_key, *sorted(settings.allowed or ())]).encode()).hexdigest()[:32]
    target = cache / key
    if not target.is_dir():
        until = min(time.monotonic() + cap_s, deadline)
        partial = cache / f"{key}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            _install(lines, pip, partial, installed, settings.allowed, until=until, cap_bytes=cap_bytes, stop=stop)
        except TimeoutError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if time.monotonic() >= deadline:
                raise OutOfTime("the time limit came while the requirements were being installed") from error
            raise DependenciesFailed(f"installing the requirements took longer than {cap_s:.0f} s") from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        partial.rename(target)
        _forget_old(cache, keep=target, cap_bytes=settings.cache_bytes)
    os.utime(target)
    return None if (target / EMPTY).exists() else target / "site"


def check_lines(requirements: Sequence[str]) -> list[str]:
    """The requirements, sorted, once each. The server has checked them; a line that is no plain requirement is refused here as well."""
    lines: set[str] = set()
    for text in requirements:
        line = text.split("#", 1)[0].strip()
        if not line:
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise DependenciesFailed(f"requirements.txt: {line[:200]!r} is not a requirement") from error
        if requirement.url or any(each.operator == "===" for each in requirement.specifier):
            raise DependenciesFailed(f"requirements.txt: {line[:200]!r}: only names and versions are taken, no addresses")
        lines.add(str(requirement))
    return sorted(lines)


def check_torch(lines: Sequence[str], version: str | None) -> None:
    """A pin of torch that the sandbox's PyTorch does not meet is refused: updates of one job must come from one PyTorch."""
    for line in lines:
        requirement = Requirement(line)
        if version and canonicalize_name(requirement.name) == "torch" and not requirement.specifier.contains(version, prereleases=True):
            raise _torch_conflict(f"requirements.txt asks for {line}", version)


def folder_bytes(folder: Path) -> int:
    """Bytes on disk below `folder`, links not followed."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except OSError:
                continue
    return total


def _check_allowed(names: Iterable[str], allowed: frozenset[str] | None, here: Collection[str]) -> None:
    for name in names:
        if allowed is not None and canonicalize_name(name) not in allowed and canonicalize_name(name) not in here:
            raise PackageNotAllowed(f"this machine's provider does not let it install the package {name}")


def _install(
    lines: Sequence[str],
    pip: Pip,
    folder: Path,
    installed: Mapping[str, str],
    allowed: frozenset[str] | None,
    *,
    until: float,
    cap_bytes: int,
    stop: StopSwitch,
) -> None:
    inside = pip.inside(folder)
    (folder / "requirements.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dry_run = ["--dry-run", "--report", f"{inside}/report.json", "-r", f"{inside}/requirements.txt"]
    _succeed(pip.run(dry_run, folder, until=until, cap_bytes=cap_bytes, stop=stop))
    chosen = _read_report(folder / "report.json", installed)
    if not chosen:
        (folder / EMPTY).touch()
        return
    _check_allowed((line.partition("==")[0] for line in chosen), allowed, ())
    with_hashes = all("--hash" in line for line in chosen)
    lock = "\n".join(line if with_hashes else line.split(" --hash")[0] for line in chosen)
    (folder / "locked.txt").write_text(lock + "\n", encoding="utf-8")
    _succeed(
        pip.run(
            ["--no-deps", "--target", f"{inside}/site", "-r", f"{inside}/locked.txt"], folder, until=until, cap_bytes=cap_bytes, stop=stop
        )
    )
    if not (folder / "site").is_dir():
        raise DependenciesFailed("pip reported success and installed nothing")


def _read_report(path: Path, installed: Mapping[str, str]) -> list[str]:
    """Lines `name==version --hash=...` for what pip would install. A direct address, also of a dependency's dependency, is refused."""
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise DependenciesFailed("the requirements ask for too many packages")
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lines: list[str] = []
    if len(report.get("install", [])) > MAX_PACKAGES:
        raise DependenciesFailed(f"the requirements need {len(report['install'])} packages; at most {MAX_PACKAGES} are installed")
    for item in report.get("install", []):
        metadata: dict[str, Any] = item["metadata"]
        name, version = str(metadata["name"]), str(metadata["version"])
        address = str(item["download_info"]["url"])
        if item.get("is_direct") or "archive_info" not in item["download_info"] or not address.split("#")[0].endswith(".whl"):
            raise DependenciesFailed(f"{name} {version} would come from {address.split('?')[0][:200]}, which is not the package index")
        if canonicalize_name(name) == "torch" and "torch" in installed:
            raise _torch_conflict(f"the requirements need torch {version}", installed["torch"])
        archive: dict[str, Any] = item["download_info"]["archive_info"]
        digest = (archive.get("hashes") or {}).get("sha256") or str(archive.get("hash", "")).removeprefix("sha256=")
        lines.append(f"{name}=={version}" + (f" --hash=sha256:{digest}" if digest else ""))
    return lines


def _torch_conflict(words: str, version: str) -> DependenciesFailed:
    return DependenciesFailed(
        f"{words}, but the sandbox has torch {version} and all agents of a job train with that one. "
        "Remove the pin of torch from requirements.txt, or loosen what needs it."
    )


def _succeed(result: PipResult) -> None:
    if result.exit_code == 0:
        return
    lines = [line for line in result.output.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-8:]
    raise DependenciesFailed("pip could not install the requirements:\n" + "\n".join(errors)[-3000:])


def _forget_old(cache: Path, *, keep: Path, cap_bytes: int) -> None:
    """The least recently used sets go until the rest fits. A container that still shows one goes with its next use."""
    sets = sorted((entry for entry in cache.iterdir() if entry.is_dir() and entry != keep), key=lambda entry: entry.stat().st_mtime)
    sizes = {entry: folder_bytes(entry) for entry in [*sets, keep]}
    total = sum(sizes.values())
    for entry in sets:
        if total <= cap_bytes:
            break
        shutil.rmtree(entry, ignore_errors=True)
        total -= sizes[entry]


def watch_until_done(done: threading.Event, folder: Path, kill: Any, *, until: float, cap_bytes: int, stop: StopSwitch) -> None:
    """Waits for a running pip and kills it past the time, the size, or when told to stop (raising the matching exception)."""
    wake = threading.Event()
    stop.on_throw(wake.set)
    while not done.wait(0.25):
        if time.monotonic() > until:
            kill()
            raise TimeoutError
        if stop.reason:
            kill()
            stop.check()
        if folder_bytes(folder) > cap_bytes:
            kill()
            raise DependenciesFailed(f"the requirements take more than {cap_bytes // 1024**2} MB")
