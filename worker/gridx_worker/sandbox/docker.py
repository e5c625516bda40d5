"""The sandbox for strangers' code: one container per attempt, without network, rights or a writable disk."""

import json
import logging
import secrets
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import Mount

import gridx_worker.task
from gridx_worker.dependencies import PipSettings, install
from gridx_worker.images import IMAGE, image_id
from gridx_worker.sandbox.base import Outcome, ProviderLimits, SandboxInfo, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.container import (
    LABEL,
    MB,
    What,
    best_runtime,
    fenced,
    find_problems,
    is_leftover,
    make_labels,
    owner_of,
    read_only_bind,
    tmpfs_volume_options,
)
from gridx_worker.sandbox.docker_api import BlockStream, docker_trouble, forgiving, pump, wait_for
from gridx_worker.sandbox.docker_pip import ContainerPip
from gridx_worker.sandbox.output import BadOutput, copy_capped, describe_exit, missing, out_of_memory, out_of_time

log = logging.getLogger(__name__)

INPUT, WORK, TASK, PACKAGES = "/input", "/work", "/gridx", "/packages"
WORK_INODES = 16384
PROBE_S = 60.0
PROBE = """
import importlib.metadata as m, json, platform
print(json.dumps({"python": platform.python_version(), "versions": {d.metadata["Name"].lower(): d.version for d in m.distributions()}}))
"""


class ImageMissing(SandboxUnavailable):
    """The sandbox image is not on this machine."""


class DockerSandbox:
    """`folder` is the agent's own state folder; `image` the only image that is ever started, resolved to its id once."""

    def __init__(
        self,
        client: DockerClient,
        *,
        agent_id: str,
        folder: Path,
        limits: ProviderLimits,
        image: str = IMAGE,
        pip: PipSettings | None = None,
    ) -> None:
        self._client, self._agent_id, self._folder, self._limits, self._image = client, agent_id, folder, limits, image
        self._pip = pip or PipSettings()
        self.owner = owner_of(folder)
        self._lock = threading.Lock()
        self._in_use: set[str] = set()
        self._info: SandboxInfo | None = None
        self._runtime: str | None = None
        self._task = folder / "task"

    def prepare(self) -> SandboxInfo:
        """Preflight: limits are enforced, the image is here and runs. Raises ImageMissing, SandboxUnavailable."""
        if self._info:
            return self._info
        with docker_trouble():
            problems = find_problems(self._client)
            if problems:
                raise SandboxUnavailable(f"this Docker cannot keep a stranger's code within limits: {'; '.join(problems)}")
            found = image_id(self._client, self._image)
            if not found:
                raise ImageMissing(f"the sandbox image {self._image} is missing; build it with `gridx-worker build-image`")
            self._runtime = best_runtime(self._client)
            self._copy_task()
            self.reap()
            probed = self._probe(found)
        self._info = SandboxInfo(
            isolation="docker+runsc" if self._runtime else "docker",
            python_version=probed["python"],
            versions=probed["versions"],
            image_id=found,
        )
        return self._info

    def install(self, requirements: Sequence[str], *, cap_s: float, cap_bytes: int, deadline: float, stop: StopSwitch) -> Path | None:
        info = self.prepare()
        assert info.image_id is not None
        pip = ContainerPip(
            self._client, self._pip, image=info.image_id, limits=self._limits, runtime=self._runtime, in_use=self._using,
            labels=lambda seconds: make_labels("install", owner=self.owner, agent=self._agent_id, seconds=seconds),
        )  # fmt: skip
        with docker_trouble():
            return install(
                requirements, pip, cache=self._folder / "packages", sandbox_key=info.image_id, installed=info.versions,
                cap_s=cap_s, cap_bytes=cap_bytes, deadline=deadline, stop=stop,
            )  # fmt: skip

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        info = self.prepare()
        assert info.image_id is not None
        name = f"gridx-{self.owner}-{work.task_id}-{work.attempt}-{secrets.token_hex(4)}"
        with docker_trouble(), ExitStack() as stack:
            stack.enter_context(self._using(f"{name}-work"))
            volume = stack.enter_context(self._volume(f"{name}-work", work))
            holder = stack.enter_context(self._container(f"{name}-holder", self._holder_settings(info.image_id, work, volume)))
            holder.start()
            container = stack.enter_context(self._container(name, self._script_settings(info.image_id, work, volume)))
            outcome = self._follow(container, work, on_output, stop)
            return outcome if outcome.kind or outcome.stopped else self._take_output(holder, work, outcome)

    def reap(self) -> None:
        """Removes our own containers and volumes that are not in use, and anybody's past their deadline."""
        with self._lock:
            in_use = set(self._in_use)
        for container in self._client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
            if is_leftover(container.labels, owner=self.owner, in_use=container.name in in_use):
                log.info("removing a leftover container", extra={"container": container.name})
                forgiving(lambda each=container: each.remove(force=True, v=True))
        for volume in self._client.volumes.list(filters={"label": LABEL}):
            labels: dict[str, str] = volume.attrs.get("Labels") or {}
            if is_leftover(labels, owner=self.owner, in_use=volume.name in in_use):
                log.info("removing a leftover volume", extra={"volume": volume.name})
                forgiving(lambda each=volume: each.remove(force=True))

    def close(self) -> None:
        forgiving(self.reap)
        self._client.close()

    def _follow(self, container: Container, work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        """Starts the container and waits for its end, or ends it. The output is not looked at yet."""
        attach: Any = self._client.api.attach
        frames: Iterator[bytes] = attach(container.id, stdout=True, stderr=True, stream=True)
        reader = threading.Thread(target=pump, args=(frames, on_output), name="output", daemon=True)
        reader.start()
        wake, ended = threading.Event(), threading.Event()
        started = time.monotonic()
        container.start()
        threading.Thread(target=wait_for, args=(container, ended, wake), name="wait", daemon=True).start()
        stop.on_throw(wake.set)
        wake.wait(max(work.seconds_left, 0))  # the agent's own monotonic timer: nothing inside can hold it up
        seconds = time.monotonic() - started
        if not ended.is_set():
            forgiving(container.kill)
            reader.join(timeout=5)
            return Outcome(reason=stop.words, seconds=seconds, stopped=stop.reason) if stop.reason else out_of_time(seconds=seconds)
        reader.join(timeout=10)
        container.reload()
        state: dict[str, Any] = container.attrs["State"]
        code = int(state["ExitCode"])
        if code == 0:
            return Outcome(exit_code=0, seconds=seconds)
        if state.get("OOMKilled"):
            return out_of_memory(self._limits.memory_bytes, code, seconds=seconds)
        return describe_exit(code, seconds=seconds)

    def _take_output(self, holder: Container, work: Work, outcome: Outcome) -> Outcome:
        """Reads exactly the expected file from the volume; what Docker finds there may be anything."""
        try:
            size, digest = self._read_archive(holder, work)
        except BadOutput as error:
            return replace(outcome, kind="output", reason=str(error))
        return replace(outcome, size=size, sha256=digest)

    def _read_archive(self, holder: Container, work: Work) -> tuple[int, str]:
        try:
            blocks, _ = holder.get_archive(f"{WORK}/{work.output_name}", chunk_size=MB)
        except NotFound as error:
            raise missing(work.output_name) from error
        with tarfile.open(fileobj=cast(Any, BlockStream(blocks)), mode="r|") as archive:
            entry = archive.next()
            if entry is None or entry.name != work.output_name or not entry.isreg() or entry.issparse():
                raise BadOutput(f"{work.output_name} is not a regular file")
            content = archive.extractfile(entry)
            assert content is not None
            return copy_capped(content.read, work.output_name, work.output, size=entry.size, cap=work.output_bytes)

    def _script_settings(self, image: str, work: Work, volume: str) -> dict[str, Any]:
        settings = fenced(self._limits, file_bytes=self._work_bytes(work))
        settings["environment"] |= {**work.environment, "GRIDX_INPUT": INPUT, "GRIDX_THREADS": str(self._limits.threads)}
        mounts = [
            Mount(target=WORK, source=volume, type="volume", no_copy=True),
            read_only_bind(work.input, INPUT),
            read_only_bind(self._task, TASK),
        ]
        if work.packages:
            mounts.append(read_only_bind(work.packages, PACKAGES))
            settings["environment"]["GRIDX_PACKAGES"] = PACKAGES
        return settings | {
            "image": image,
            "command": ["python3", "-u", f"{TASK}/launcher.py", *work.arguments],
            "working_dir": WORK,
            "mounts": mounts,
            "labels": self._labels("attempt", work),
            "runtime": self._runtime,
        }

    def _holder_settings(self, image: str, work: Work, volume: str) -> dict[str, Any]:
        """A container that does nothing but keep the volume in being while its contents are read."""
        tiny = replace(self._limits, cpus=min(self._limits.cpus, 0.5), memory_bytes=32 * MB, processes=8)
        return fenced(tiny, file_bytes=MB) | {
            "image": image,
            "command": ["sleep", "infinity"],
            "mounts": [Mount(target=WORK, source=volume, type="volume", no_copy=True)],
            "labels": self._labels("holder", work),
        }

    def _labels(self, what: What, work: Work) -> dict[str, str]:
        ids = {"job": work.job_id, "subtask": work.task_id, "attempt": work.attempt}
        return make_labels(what, owner=self.owner, agent=self._agent_id, seconds=max(work.seconds_left, 0), **ids)

    def _work_bytes(self, work: Work) -> int:
        """The writable folder lies in memory: it ends at the output's cap or at the memory limit, and its pages count as the script's."""
        return min(work.output_bytes, self._limits.memory_bytes) + 4 * MB

    @contextmanager
    def _volume(self, name: str, work: Work) -> Generator[str]:
        options = tmpfs_volume_options(size=self._work_bytes(work), inodes=WORK_INODES)
        volume = self._client.volumes.create(name=name, driver="local", driver_opts=options, labels=self._labels("volume", work))
        try:
            yield name
        finally:
            forgiving(lambda: volume.remove(force=True))

    @contextmanager
    def _container(self, name: str, settings: dict[str, Any]) -> Generator[Container]:
        """Created, not started: a failed start leaves the container behind too, so it is removed in any case."""
        with self._using(name):
            container = self._client.containers.create(name=name, **{key: value for key, value in settings.items() if value is not None})
            try:
                yield container
            finally:
                forgiving(lambda: container.remove(force=True, v=True))

    @contextmanager
    def _using(self, name: str) -> Generator[None]:
        """Keeps the reaper away from a container or volume of this name."""
        with self._lock:
            self._in_use.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._in_use.discard(name)

    def _probe(self, image: str) -> dict[str, Any]:
        labels = make_labels("attempt", owner=self.owner, agent=self._agent_id, seconds=PROBE_S)
        command = {"image": image, "command": ["python3", "-c", PROBE], "labels": labels, "runtime": self._runtime}
        settings = fenced(self._limits, file_bytes=MB) | command
        with self._container(f"gridx-{self.owner}-probe-{secrets.token_hex(4)}", settings) as container:
            container.start()
            code = container.wait(timeout=PROBE_S)["StatusCode"]
            output: bytes = container.logs(stdout=True, stderr=True, tail=50)
        try:
            if code != 0:
                raise ValueError
            return json.loads(output)
        except ValueError as error:
            raise SandboxUnavailable(f"the image {self._image} does not run Python: {output[-500:].decode(errors='replace')}") from error

    def _copy_task(self) -> None:
        """The launcher and the helper, readable by the sandbox's user whatever this installation's file modes are."""
        source = Path(gridx_worker.task.__file__).parent
        self._task.mkdir(parents=True, exist_ok=True)
        self._task.chmod(0o755)
        for file in source.glob("*.py"):
            target = self._task / file.name
            shutil.copyfile(file, target)
            target.chmod(0o644)
