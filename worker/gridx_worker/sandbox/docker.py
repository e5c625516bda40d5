"""The sandbox for strangers' code: containers without network, rights or a writable disk, one for each job.

A job's container stays for its next subtask, and one that no job has used is kept ready: starting Python and importing PyTorch takes
seconds. The least recently used ones go, and those of jobs that are over.
"""

import json
import logging
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from docker import DockerClient
from docker.errors import DockerException
from docker.models.containers import Container
from docker.types import Mount

import gridx_worker.task
from gridx_worker.dependencies import PipSettings, install
from gridx_worker.images import IMAGE, image_id
from gridx_worker.sandbox.base import Outcome, ProviderLimits, SandboxInfo, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.container import (
    LABEL,
    MB,
    best_runtime,
    fenced,
    find_problems,
    gpu_request,
    is_leftover,
    make_labels,
    owner_of,
    read_only_bind,
    tmpfs_volume_options,
)
from gridx_worker.sandbox.docker_api import docker_trouble, forgiving
from gridx_worker.sandbox.docker_pip import ContainerPip
from gridx_worker.sandbox.warm import INPUT, WORK, NotStarted, WarmContainer

log = logging.getLogger(__name__)

SCRIPT = "train.py"
TASK, PACKAGES = "/gridx", "/packages"
WRITABLE = (WORK, "/tmp", "/dev/shm")  # noqa: S108 - inside the container
WORK_INODES = 16384
WARM_BYTES = 350 * MB
"""What a container holds that waits with PyTorch in memory; measured 300 MB."""
WARM_LIFE_S = 6 * 3600.0
REPORT_GRACE_S = 3600.0
PROBE_S = 60.0
PROBE = """
import importlib.metadata as m, json, platform
print(json.dumps({"python": platform.python_version(), "versions": {d.metadata["Name"].lower(): d.version for d in m.distributions()}}))
"""


_Key = tuple[int, Path | None, int]
"""Job, packages, and when these were installed: a container shows the folder that was there when it began."""


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
        warm_bytes: int = 1024 * MB,
    ) -> None:
        self._client, self._agent_id, self._folder, self._limits, self._image = client, agent_id, folder, limits, image
        self._pip = pip or PipSettings()
        self.owner = owner_of(folder)
        self._lock = threading.Lock()
        self._in_use: set[str] = set()
        self._info: SandboxInfo | None = None
        self._runtime: str | None = None
        self._task, self._inputs = folder / "task", folder / "inputs"
        self._most_kept = max(warm_bytes // WARM_BYTES, 1)
        self._kept: OrderedDict[_Key, WarmContainer] = OrderedDict()
        self._spare: Future[WarmContainer] | None = None
        self._closed = False
        self._tidy = ThreadPoolExecutor(1, thread_name_prefix="containers")

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
            shutil.rmtree(self._inputs, ignore_errors=True)  # of a killed agent
            self.reap()
            probed = self._probe(found)
        self._info = SandboxInfo(
            isolation="docker+runsc" if self._runtime else "docker",
            python_version=probed["python"],
            versions=probed["versions"],
            image_id=found,
            gpu=self._limits.gpu is not None and not probed["versions"].get("torch", "+cpu").endswith("+cpu"),
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
                cap_s=cap_s, cap_bytes=cap_bytes, deadline=deadline, stop=stop, settings=self._pip,
            )  # fmt: skip

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        self.prepare()
        with docker_trouble():
            key = _key(work)
            warm = self._take(key, work)
            packages = PACKAGES if work.packages else None
            try:
                return warm.run(work, packages=packages, on_output=on_output, stop=stop)
            except NotStarted:  # it ended while it waited for work
                self._remove(warm)
                warm = self._make_for(work)
                return warm.run(work, packages=packages, on_output=on_output, stop=stop)
            finally:
                self._keep(key, warm)

    def why_unwell(self) -> str | None:
        try:
            self._client.ping()
        except (DockerException, requests.RequestException) as error:
            return f"Docker does not answer: {(str(error).splitlines() or [''])[0][:120]}"
        return None

    def roots(self) -> list[int]:
        """The first process of every container of Grid-X's, also of other agents'."""
        with docker_trouble():
            running = self._client.containers.list(filters={"label": LABEL}, ignore_removed=True)
        return [pid for container in running if (pid := container.attrs["State"]["Pid"])]

    def idle(self) -> None:
        """Keeps one container ready that no job has used, so that the next new job does not wait for PyTorch."""
        with self._lock:
            if self._closed or self._spare is not None:
                return
            self._spare = self._tidy.submit(self._make, None, WARM_LIFE_S)

    def forget(self, job_ids: Collection[int]) -> None:
        """These jobs are over: their containers go."""
        with self._lock:
            gone = [self._kept.pop(key) for key in list(self._kept) if key[0] in job_ids]
        for warm in gone:
            self._tidy.submit(self._remove, warm)

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
        with self._lock:
            self._closed = True
            kept, self._kept, spare, self._spare = list(self._kept.values()), OrderedDict(), self._spare, None
        self._tidy.shutdown(wait=True)
        if spare is not None and spare.exception() is None:
            kept.append(spare.result())
        for warm in kept:
            self._remove(warm)
        forgiving(self.reap)
        self._client.close()

    def _take(self, key: _Key, work: Work) -> WarmContainer:
        """A container for this job that no other attempt uses: its own from before, the spare one, or a new one."""
        enough = time.time() + work.seconds_left
        with self._lock:
            warm = self._kept.pop(key, None)
        if warm is not None:
            if warm.expires > enough and warm.settle():
                return warm
            self._tidy.submit(self._remove, warm)
        if work.packages is None:
            with self._lock:
                spare, self._spare = self._spare, None
            if spare is not None and spare.exception() is None:
                if (warm := spare.result()).expires > enough and warm.settle():
                    return warm
                self._tidy.submit(self._remove, warm)
        return self._make_for(work)

    def _make_for(self, work: Work) -> WarmContainer:
        return self._make(work.packages, max(work.seconds_left + REPORT_GRACE_S, WARM_LIFE_S), _unneeded(work))

    def _keep(self, key: _Key, warm: WarmContainer) -> None:
        """For the job's next subtask, as long as the budget of memory allows."""
        gone: list[WarmContainer] = []
        with self._lock:
            if warm.is_usable and not self._closed:
                self._kept[key] = warm
                while len(self._kept) > self._most_kept:
                    gone.append(self._kept.popitem(last=False)[1])
            else:
                gone.append(warm)
        for each in gone:
            self._remove(each) if self._closed else self._tidy.submit(self._remove, each)

    def _make(self, packages: Path | None, seconds: float, without: str | None = None) -> WarmContainer:
        """A container whose launcher is ready, all its libraries but that one loaded. Raises SandboxUnavailable, DockerException."""
        info = self._info
        assert info is not None
        assert info.image_id is not None
        name = f"gridx-{self.owner}-{secrets.token_hex(6)}"
        inputs = self._inputs / name
        inputs.mkdir(mode=0o755, parents=True)
        with self._lock:
            self._in_use |= {name, f"{name}-work"}
        try:
            labels = make_labels("volume", owner=self.owner, agent=self._agent_id, seconds=seconds)
            options = tmpfs_volume_options(size=self._work_bytes, inodes=WORK_INODES)
            self._client.volumes.create(name=f"{name}-work", driver="local", driver_opts=options, labels=labels)
            asked = self._settings(info.image_id, f"{name}-work", inputs, packages, seconds)
            if without is not None:
                asked["environment"] |= {"GRIDX_WITHOUT": without}
            container = self._create(name, asked)
            warm = WarmContainer(self._client, container, inputs, self._limits, time.time() + seconds)
            warm.start(asked)
        except BaseException:
            self._remove_by_name(name)
            raise
        return warm

    def _remove(self, warm: WarmContainer) -> None:
        self._remove_by_name(warm.name)
        warm.close()

    def _remove_by_name(self, name: str) -> None:
        forgiving(lambda: self._client.api.remove_container(name, force=True, v=True))
        forgiving(lambda: self._client.api.remove_volume(f"{name}-work", force=True))
        shutil.rmtree(self._inputs / name, ignore_errors=True)
        with self._lock:
            self._in_use -= {name, f"{name}-work"}

    def _create(self, name: str, settings: dict[str, Any]) -> Container:
        return self._client.containers.create(name=name, **{key: value for key, value in settings.items() if value is not None})

    def _settings(self, image: str, volume: str, inputs: Path, packages: Path | None, seconds: float) -> dict[str, Any]:
        settings = fenced(self._limits, file_bytes=self._work_bytes)
        settings["environment"] |= {"GRIDX_THREADS": str(self._limits.threads), "GRIDX_WALLS": ":".join(WRITABLE)}
        mounts = [
            Mount(target=WORK, source=volume, type="volume", no_copy=True),
            read_only_bind(inputs, INPUT),
            read_only_bind(self._task, TASK),
        ]
        if packages:
            mounts.append(read_only_bind(packages, PACKAGES))
        return settings | {
            "image": image,
            "command": ["python3", "-u", f"{TASK}/launcher.py"],
            "working_dir": WORK,
            "mounts": mounts,
            "labels": make_labels("attempt", owner=self.owner, agent=self._agent_id, seconds=seconds),
            "runtime": self._runtime,
            "stdin_open": True,
            "device_requests": [gpu_request(self._limits.gpu)] if self._limits.gpu is not None else None,
        }

    @property
    def _work_bytes(self) -> int:
        """The writable folder lies in memory, and its pages count as the script's: a model and its file cannot both have more than half."""
        return self._limits.memory_bytes // 2

    @contextmanager
    def _container(self, name: str, settings: dict[str, Any]) -> Generator[Container]:
        """Created, not started: a failed start leaves the container behind too, so it is removed in any case."""
        with self._using(name):
            container = self._create(name, settings)
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


def _unneeded(work: Work) -> str | None:
    """What the launcher need not import for the script that waits. Never NumPy or PyTorch: their seeds are set before a script starts, by
    whatever way they come into it."""
    text = (work.input / SCRIPT).read_text(encoding="utf-8", errors="replace")
    return "pandas" if work.packages is None and "pandas" not in text else None


def _key(work: Work) -> _Key:
    return work.job_id, work.packages, work.packages.stat().st_ctime_ns if work.packages else 0
