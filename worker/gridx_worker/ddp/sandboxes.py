"""Sandboxes for ranks: one for each slot, whose network the members of a gang share, and whose checkpoints can be read while they train."""

import contextlib
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import requests
from docker import DockerClient
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from gridx_worker.ddp.offer import place_on_this_machine
from gridx_worker.sandbox.base import Outcome, ProviderLimits, Sandbox, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.container import LABEL, MB, fenced, make_labels
from gridx_worker.sandbox.docker import DockerSandbox
from gridx_worker.sandbox.docker_api import BlockStream, docker_trouble, forgiving
from gridx_worker.sandbox.output import BadOutput, copy_capped, take_file
from gridx_worker.sandbox.process import ProcessSandbox
from gridx_worker.sandbox.warm import WORK, WarmContainer

HOLDER_LIMITS = ProviderLimits(cpus=0.1, memory_bytes=32 * MB, processes=8)
GANG_VARIABLE = "GRIDX_GANG"
"""Names what the members of a gang share on one Docker; taken out before a script sees it."""
_GRACE_S = 120.0
_JOIN_S = 30.0
_JOIN_PAUSE_S = 0.2


class RankSandbox(Sandbox, Protocol):
    """A sandbox that runs ranks. `place()` names what its ranks share a network with."""

    def place(self) -> str: ...

    def read(self, work: Work, name: str, target: Path, cap: int) -> tuple[int, str]:
        """Copies a file that the running script has left; (bytes, sha256). Raises BadOutput, SandboxUnavailable."""
        ...


class ProcessRanks(ProcessSandbox):
    """Ranks as processes of this user: on this machine they reach one another on 127.0.0.1."""

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        own = {name: value for name, value in work.environment.items() if name != GANG_VARIABLE}
        return super().run(replace(work, environment=own), on_output=on_output, stop=stop)

    def place(self) -> str:
        return place_on_this_machine()

    def read(self, work: Work, name: str, target: Path, cap: int) -> tuple[int, str]:
        return take_file(self._runs / f"{work.task_id}-{work.attempt}" / "work", name, target, cap)


class DockerRanks(DockerSandbox):
    """Ranks in containers. On one Docker they share the network namespace of a holder that has no network: they reach one another on
    127.0.0.1, and nothing else. With `network`, the provider's own choice, they get that network of Docker instead."""

    def __init__(self, client: DockerClient, *, network: str | None = None, **options: Any) -> None:
        super().__init__(client, **options)
        self._network = network
        self._mode: str | None = None
        self._running: WarmContainer | None = None

    def place(self) -> str:
        """Raises SandboxUnavailable where containers cannot share a network namespace."""
        self.prepare()
        if self._runtime is not None:
            raise SandboxUnavailable("under gVisor containers cannot share a network; name one with --ddp-network")
        with docker_trouble():
            return f"docker:{self._client.info()['ID']}"

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        self.prepare()
        environment = dict(work.environment)
        gang = environment.pop(GANG_VARIABLE)
        work = replace(work, environment=environment)
        if self._network is not None:
            self._mode = self._network
            return super().run(work, on_output=on_output, stop=stop)
        holder: Container | None = None
        try:
            with docker_trouble():
                holder = self._join(gang, work, stop)
                self._mode = f"container:{holder.id}"
            return super().run(work, on_output=on_output, stop=stop)
        finally:
            self._running = None
            if holder is not None:
                self._leave(holder)

    def read(self, work: Work, name: str, target: Path, cap: int) -> tuple[int, str]:
        warm = self._running
        if warm is None:
            raise BadOutput(f"{name}: the script is not running")
        try:
            container = self._client.containers.get(warm.name)
            blocks, _ = container.get_archive(f"{WORK}/1-{work.task_id}-{work.attempt}/{name}", chunk_size=MB)
            with tarfile.open(fileobj=cast(Any, BlockStream(blocks)), mode="r|") as archive:
                entry = archive.next()
                if entry is None or entry.name != name or not entry.isreg() or entry.issparse():
                    raise BadOutput(f"{name} is not a regular file")
                content = archive.extractfile(entry)
                assert content is not None
                return copy_capped(content.read, name, target, size=entry.size, cap=cap)
        except NotFound as error:
            raise BadOutput(f"{name} is gone") from error
        except (DockerException, requests.RequestException) as error:
            raise SandboxUnavailable(f"Docker failed: {str(error)[:500]}") from error

    def idle(self) -> None:
        """No container waits: each rank's is made for its gang."""

    def _take(self, key: Any, work: Work) -> WarmContainer:
        self._running = self._make_for(work)
        return self._running

    def _keep(self, key: Any, warm: WarmContainer) -> None:
        self._running = None
        self._remove(warm)

    def _settings(self, image: str, volume: str, inputs: Path, packages: Path | None, seconds: float) -> dict[str, Any]:
        return super()._settings(image, volume, inputs, packages, seconds) | {"network_mode": self._mode or "none"}

    def _join(self, gang: str, work: Work, stop: StopSwitch) -> Container:
        """The gang's holder on this Docker, made by whichever member comes first. It is nobody's leftover before its deadline."""
        info = self.prepare()
        name = f"gridx-gang-{gang}"
        seconds = max(work.seconds_left, 0.0) + _GRACE_S
        settings: dict[str, Any] = fenced(HOLDER_LIMITS, file_bytes=MB) | {
            "image": info.image_id,
            "command": ["sleep", "infinity"],
            "labels": make_labels("attempt", owner=f"gang-{gang}"[:64], agent=self._agent_id, seconds=seconds),
            "init": True,
        }
        del settings["shm_size"]
        end = time.monotonic() + _JOIN_S
        while True:
            with contextlib.suppress(APIError):  # another member makes it, or made it
                self._create(name, settings)
            try:
                holder = self._client.containers.get(name)
                holder.start()
                return holder
            except NotFound:  # being made, or just removed
                if time.monotonic() > end or stop.reason:
                    raise
                stopped = threading.Event()
                stop.on_throw(stopped.set)
                stopped.wait(_JOIN_PAUSE_S)

    def _leave(self, holder: Container) -> None:
        """Removes the holder with its last user."""
        with contextlib.suppress(SandboxUnavailable), docker_trouble():
            others = self._client.containers.list(filters={"label": LABEL}, ignore_removed=True)
            if not any(each.attrs["HostConfig"].get("NetworkMode") == f"container:{holder.id}" for each in others):
                forgiving(lambda: holder.remove(force=True, v=True))
