"""The checks, each with what is wrong and what to do. Those that need a sandbox come last, and only where it can be had."""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urljoin

import docker
import docker.errors
import httpx
import psutil

from gridx_worker import hardware
from gridx_worker.config import Config
from gridx_worker.doctor.report import Check, Findings
from gridx_worker.doctor.trials import measure_score, try_escapes
from gridx_worker.images import image_id
from gridx_worker.sandbox.base import Sandbox, SandboxUnavailable
from gridx_worker.sandbox.container import find_problems

GB = 1024**3
LEAST_DISK = 4 * GB
LEAST_SPARE_MEMORY = GB // 2
MOST_CLOCK_S = 60.0
MOST_ROUND_TRIP_S = 1.0
PINGS = 3


def examine(config: Config, make_sandbox: Callable[[Config], Sandbox], note: Callable[[Check], None]) -> Findings:
    """Looks at everything; each check is given to `note` as soon as it is known."""
    checks: list[Check] = []

    def add(check: Check) -> bool:
        checks.append(check)
        note(check)
        return check.problem is None

    for check in _machine(config):
        add(check)
    score = None
    failed = [check for check in (_docker(config) if config.sandbox == "docker" else ()) if not add(check)]
    if not failed:
        score = _try_sandbox(config, make_sandbox, add)
    for check in _server(config.server):
        add(check)
    return Findings(checks, score)


def _machine(config: Config) -> Iterator[Check]:
    free = shutil.disk_usage(_existing(config.state_dir)).free
    problem = None if free >= LEAST_DISK else f"{free / GB:.1f} GB are free in {config.state_dir}"
    yield Check(f"disk: {free / GB:.0f} GB free", problem, f"free {LEAST_DISK // GB} GB, or name another place with --state-dir")
    total, wanted = psutil.virtual_memory().total, config.limits.memory_bytes
    problem = None if wanted + LEAST_SPARE_MEMORY <= total else f"{wanted // 1024**2} MB of the machine's {total // 1024**2} MB are offered"
    yield Check(f"memory: {wanted // 1024**2} MB offered", problem, "offer less with --memory-mb, so that some is left for the machine")
    cores = psutil.cpu_count() or 1
    problem = None if config.limits.cpus <= cores else f"{config.limits.cpus:g} cores are offered, and there are {cores}"
    yield Check(f"cores: {config.limits.cpus:g} of {cores} offered", problem, "offer fewer with --cpus")
    if config.limits.gpu is None:
        yield Check("GPU: none offered")
        return
    name, count, _ = hardware.find_gpu(config.limits.gpu)
    problem = None if count else f"nvidia-smi does not know GPU {config.limits.gpu}"
    yield Check(f"GPU {config.limits.gpu}: {name or 'unknown'}", problem, "install NVIDIA's driver, or leave --gpu away")


def _docker(config: Config) -> Iterator[Check]:
    try:
        client = docker.from_env(timeout=30)
        info = client.info()
    except docker.errors.DockerException as error:
        words = (str(error).splitlines() or [type(error).__name__])[0][:300]
        yield Check("Docker answers", words, "install Docker, start it, and let your user use it: `docker info` must answer")
        return
    try:
        yield Check(f"Docker answers: {info.get('ServerVersion', '?')}")
        problems = "; ".join(find_problems(client)) or None
        yield Check(
            "Docker enforces all limits", problems, "turn the named limit on in the kernel's boot options or Docker's configuration"
        )
        missing = None if image_id(client, config.image) else "it is missing"
        yield Check(f"image {config.image}", missing, "gridx-worker build-image")
        if config.limits.gpu is not None:
            has_runtime = "nvidia" in (info.get("Runtimes") or {})
            yield Check(
                "Docker gives GPUs to containers",
                None if has_runtime else "the runtime `nvidia` is missing",
                "install NVIDIA's container toolkit",
            )
    finally:
        client.close()


def _try_sandbox(config: Config, make_sandbox: Callable[[Config], Sandbox], add: Callable[[Check], bool]) -> float | None:
    # A folder of its own: with an agent's folder it would take that agent's running sandboxes for leftovers.
    with tempfile.TemporaryDirectory(prefix="gridx-doctor-") as place:
        folder = Path(place).resolve()
        state = folder / "state"
        state.mkdir()
        try:
            sandbox = make_sandbox(replace(config, state_dir=state))
            try:
                info = sandbox.prepare()
                torch = info.versions.get("torch", "none")
                add(Check(f"sandbox: Python {info.python_version}, torch {torch}"))
                if config.limits.gpu is not None and not info.gpu:
                    add(
                        Check(
                            "the image's PyTorch uses GPUs",
                            f"it is {torch}",
                            "build the image with a CUDA wheel: build-image --wheels FOLDER",
                        )
                    )
                if config.sandbox == "docker":
                    add(try_escapes(sandbox, folder / "escapes"))
                check, score = measure_score(sandbox, folder / "score")
                add(check)
                return score
            finally:
                sandbox.close()
        except SandboxUnavailable as error:
            add(Check(f"{config.sandbox} sandbox", str(error), "see the reason; `docker ps -a` and the Docker daemon's log tell more"))
    return None


def _server(server: str) -> Iterator[Check]:
    address, seconds, answer = urljoin(server.rstrip("/") + "/", "health"), list[float](), None
    try:
        with httpx.Client(timeout=15) as client:
            for _ in range(PINGS):
                started = time.monotonic()
                answer = client.get(address)
                seconds.append(time.monotonic() - started)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield Check(
            f"server {server}", str(error) or type(error).__name__, "is the address right, and does a proxy or firewall let it through?"
        )
        return
    assert answer is not None
    problem = None if answer.is_success else f"it answers with status {answer.status_code}"
    yield Check(f"server {server}", problem, "ask whoever runs it, or look at the address: a Grid-X server answers on /health")
    typical = statistics.median(seconds)
    problem = None if typical < MOST_ROUND_TRIP_S else "answers are slow, and so will be downloads and uploads"
    yield Check(f"network: {typical * 1000:.0f} ms to the server and back", problem, "a wired network or another proxy may help")
    if "date" in answer.headers:
        skew = time.time() - parsedate_to_datetime(answer.headers["date"]).timestamp()
        problem = None if abs(skew) < MOST_CLOCK_S else f"it is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the server's"
        yield Check(f"clock: {skew:+.0f} s against the server", problem, "turn on time synchronisation (timedatectl set-ntp true)")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
