"""pip in a container of its own: the only one with network access, and nothing of the job in it but the requirements."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import Mount

from gridx_worker.dependencies import PipResult, PipSettings, watch_until_done
from gridx_worker.sandbox.base import ProviderLimits, StopSwitch
from gridx_worker.sandbox.container import USER, fenced, read_only_bind

TARGET, LINKS, CERT = "/target", "/find-links", "/ca.pem"
MEMORY_BYTES = 1024**3


class ContainerPip:
    """`labels` makes a container's labels from the seconds it may live; `in_use` keeps the reaper away from a name."""

    def __init__(
        self,
        client: DockerClient,
        settings: PipSettings,
        *,
        image: str,
        limits: ProviderLimits,
        runtime: str | None,
        labels: Callable[[float], dict[str, str]],
        in_use: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._client, self._settings, self._image, self._runtime = client, settings, image, runtime
        self._limits = replace(limits, memory_bytes=max(limits.memory_bytes, MEMORY_BYTES))
        self._labels, self._in_use = labels, in_use

    def inside(self, folder: Path) -> str:
        return TARGET

    def run(self, arguments: Sequence[str], folder: Path, *, until: float, cap_bytes: int, stop: StopSwitch) -> PipResult:
        user = USER
        (folder / "tmp").mkdir(exist_ok=True)
        if os.getuid() == 0:
            for path in (folder, folder / "tmp"):
                os.chown(path, *(int(number) for number in USER.split(":")))
        else:
            user = f"{os.getuid()}:{os.getgid()}"
        options, mounts = pip_options(self._settings)
        settings = fenced(self._limits, file_bytes=cap_bytes, network=True, user=user)
        settings["environment"] |= {"TMPDIR": f"{TARGET}/tmp", "HOME": f"{TARGET}/tmp"}  # noqa: S108 - inside the container
        command = ["python3", "-m", "pip", "install", "--isolated", "--only-binary=:all:", "--no-input", "--no-cache-dir"]
        name = f"gridx-install-{secrets.token_hex(6)}"
        settings |= {
            "name": name,
            "image": self._image,
            "command": [*command, "--disable-pip-version-check", *options, *arguments],
            "working_dir": TARGET,
            "labels": self._labels(max(until - time.monotonic(), 0.0)),
            "mounts": [Mount(target=TARGET, source=str(folder), type="bind"), *mounts],
        }
        if self._runtime:
            settings["runtime"] = self._runtime
        with self._in_use(name):
            container = self._client.containers.create(**settings)
            try:
                return _run(container, folder, until=until, cap_bytes=cap_bytes, stop=stop)
            finally:
                container.remove(force=True, v=True)


def pip_options(settings: PipSettings) -> tuple[list[str], list[Mount]]:
    """pip's arguments for this provider's package sources, and the mounts that they refer to.

    Local folders are mounted; local indexes (file:) stay behind, since pip in the container cannot see them.
    """
    options: list[str] = []
    mounts: list[Mount] = []
    if settings.index_url and _remote(settings.index_url):
        options += ["--index-url", settings.index_url]
    for address in settings.extra_index_urls:
        if _remote(address):
            options += ["--extra-index-url", address]
    for number, place in enumerate(settings.find_links):
        if _remote(place):
            options += ["--find-links", place]
        elif Path(place).is_dir():
            mounts.append(read_only_bind(Path(place).resolve(), f"{LINKS}/{number}"))
            options += ["--find-links", f"{LINKS}/{number}"]
    if settings.cert and settings.cert.is_file():
        mounts.append(read_only_bind(settings.cert.resolve(), CERT))
        options += ["--cert", CERT]
    if settings.no_index:
        options.append("--no-index")
    for host in settings.trusted_hosts:
        options += ["--trusted-host", host]
    return options, mounts


def _run(container: Container, folder: Path, *, until: float, cap_bytes: int, stop: StopSwitch) -> PipResult:
    container.start()
    done = threading.Event()
    result: dict[str, Any] = {}

    def wait() -> None:
        while not done.is_set():
            try:
                result.update(container.wait(timeout=600))
                done.set()
            except NotFound:
                done.set()
            except (APIError, requests.RequestException):
                done.wait(0.5)

    threading.Thread(target=wait, name="pip", daemon=True).start()
    try:
        watch_until_done(done, folder, container.kill, until=until, cap_bytes=cap_bytes, stop=stop)
    finally:
        done.set()
    output: bytes = container.logs(stdout=True, stderr=True, tail=300)
    return PipResult(int(result.get("StatusCode", 1)), output[-20000:].decode(errors="replace"))


def _remote(address: str) -> bool:
    return urlsplit(address).scheme in ("http", "https")
