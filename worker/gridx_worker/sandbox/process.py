"""A sandbox in name only: the script runs as a process of this user, with limits but without walls. For one's own code only."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

import gridx_worker.task
from gridx_worker.dependencies import PipResult, install, watch_until_done
from gridx_worker.sandbox.base import DependenciesFailed, Outcome, ProviderLimits, SandboxInfo, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.output import BadOutput, describe_exit, out_of_memory, out_of_time, take_file

WATCH_S = 0.2
LIBRARIES = ("torch", "numpy", "pandas")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
PASSED_TO_PIP = (*PASSED_ON, "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PROBE = """
import importlib.metadata as m, json, platform
found = {}
for name in ("torch", "numpy", "pandas", "pip"):
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
print(json.dumps({"python": platform.python_version(), "versions": found}))
"""


class ProcessSandbox:
    """`python` is the interpreter scripts run with (default: the agent's own); `folder` holds runs and the package cache."""

    def __init__(self, *, folder: Path, limits: ProviderLimits, python: Path | None = None) -> None:
        self._python = str(python or sys.executable)
        self._runs = folder / "runs"
        self._packages = folder / "packages"
        self._limits = limits
        self._info: SandboxInfo | None = None
        self._in_use: Path | None = None

    def prepare(self) -> SandboxInfo:
        """Asks the interpreter for its libraries. Raises SandboxUnavailable when one that scripts count on is missing."""
        environment = {name: value for name, value in os.environ.items() if name in PASSED_ON}
        try:
            answer = subprocess.run([self._python, "-c", PROBE], capture_output=True, text=True, timeout=60, env=environment, check=True)
            found = json.loads(answer.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise SandboxUnavailable(f"{self._python} does not run as a Python interpreter: {error}") from error
        lacking = [name for name in LIBRARIES if name not in found["versions"]]
        if lacking:
            raise SandboxUnavailable(
                f"{self._python} lacks {', '.join(lacking)}. Install with `{self._python} -m pip install {' '.join(lacking)}`, "
                "or name an interpreter that has them with --python"
            )
        gpu = not found["versions"]["torch"].endswith("+cpu")
        self._info = SandboxInfo(isolation="process", python_version=found["python"], versions=found["versions"], gpu=gpu)
        self.reap()
        return self._info

    def install(self, requirements: Sequence[str], *, cap_s: float, cap_bytes: int, deadline: float, stop: StopSwitch) -> Path | None:
        info = self._info or self.prepare()
        key = json.dumps([self._python, info.python_version, dict(sorted(info.versions.items()))])
        return install(
            requirements, _HostPip(self._python), cache=self._packages, sandbox_key=key, installed=info.versions,
            cap_s=cap_s, cap_bytes=cap_bytes, deadline=deadline, stop=stop,
        )  # fmt: skip

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        run = self._in_use = self._runs / f"{work.task_id}-{work.attempt}"
        shutil.rmtree(run, ignore_errors=True)
        folder, temporary = run / "work", run / "tmp"
        folder.mkdir(parents=True)
        temporary.mkdir()
        try:
            return self._run(work, folder, temporary, on_output, stop)
        finally:
            self._in_use = None
            shutil.rmtree(run, ignore_errors=True)

    def reap(self) -> None:
        """Only one agent uses this folder (it is locked), so whatever lies there and is not in use is a leftover."""
        for entry in self._runs.iterdir() if self._runs.is_dir() else []:
            if entry != self._in_use:
                shutil.rmtree(entry, ignore_errors=True)

    def close(self) -> None:
        self.reap()

    def _run(self, work: Work, folder: Path, temporary: Path, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        launcher = Path(gridx_worker.task.__file__).with_name("launcher.py")
        wake = threading.Event()
        started = time.monotonic()
        process = subprocess.Popen(
            [self._python, "-u", str(launcher), *work.arguments],
            cwd=folder, env=self._environment(work, temporary), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        pipe = process.stdout.fileno()

        def follow() -> None:
            while block := os.read(pipe, 65536):
                on_output(block)
            wake.set()

        reader = threading.Thread(target=follow, name="output", daemon=True)
        reader.start()
        stop.on_throw(wake.set)
        try:
            verdict = self._watch(process, work, wake, stop, started)
        finally:
            kill_tree(process)
            reader.join(timeout=5)
            if not reader.is_alive():
                process.stdout.close()
        return verdict or self._finish(work, folder, process.returncode, time.monotonic() - started)

    def _watch(
        self, process: subprocess.Popen[bytes], work: Work, wake: threading.Event, stop: StopSwitch, started: float
    ) -> Outcome | None:
        """Waits for the end; an Outcome when it was ended from here, None when the script ended by itself."""
        while process.poll() is None:
            wake.wait(max(min(WATCH_S, work.seconds_left), 0.005))
            if process.poll() is not None:
                break
            seconds = time.monotonic() - started
            if stop.reason:
                return Outcome(reason=stop.words, seconds=seconds, stopped=stop.reason)
            if work.seconds_left <= 0:
                return out_of_time(seconds=seconds)
            tree = process_tree(process.pid)
            if used_memory(tree, self._limits.memory_bytes) > self._limits.memory_bytes:
                return out_of_memory(self._limits.memory_bytes, None, seconds=seconds)
            if len(tree) > self._limits.processes:
                return Outcome("script", f"the script started more than {self._limits.processes} processes", seconds=seconds)
            if wake.is_set():
                time.sleep(0.005)  # the output has ended, the process is about to
        return None

    def _finish(self, work: Work, folder: Path, code: int, seconds: float) -> Outcome:
        code = code if code >= 0 else 128 - code
        if code != 0:
            return describe_exit(code, seconds=seconds)
        try:
            size, digest = take_file(folder, work.output_name, work.output, work.output_bytes)
        except BadOutput as error:
            return Outcome("output", str(error), 0, seconds=seconds)
        return Outcome(exit_code=0, size=size, sha256=digest, seconds=seconds)

    def _environment(self, work: Work, temporary: Path) -> dict[str, str]:
        threads = str(self._limits.threads)
        # Memory is watched from outside; the limit on data is a second belt, wide enough for what PyTorch reserves without using it.
        data = 2 * self._limits.memory_bytes + 4 * 1024**3
        rlimits = {"FSIZE": work.output_bytes + 64 * 1024**2, "NOFILE": 4096, "CORE": 0, "DATA": data}
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), threads),
            "HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
            **work.environment,
            "GRIDX_INPUT": str(work.input), "GRIDX_THREADS": threads, "GRIDX_PARENT": str(os.getpid()),
            "GRIDX_RLIMITS": json.dumps(rlimits), **({"GRIDX_PACKAGES": str(work.packages)} if work.packages else {}),
        }  # fmt: skip


class _HostPip:
    """pip of the chosen interpreter, with this machine's own pip settings: process sandboxes run one's own code only."""

    def __init__(self, python: str) -> None:
        self._python = python

    def inside(self, folder: Path) -> str:
        return str(folder)

    def run(self, arguments: Sequence[str], folder: Path, *, until: float, cap_bytes: int, stop: StopSwitch) -> PipResult:
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        log = folder / "pip.log"
        environment = {name: value for name, value in os.environ.items() if name in PASSED_TO_PIP or name.startswith("PIP_")}
        environment["TMPDIR"] = str(temporary)
        command = [self._python, "-m", "pip", "install", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        done = threading.Event()
        threading.Thread(target=lambda: (process.wait(), done.set()), name="pip", daemon=True).start()
        try:
            watch_until_done(done, folder, lambda: kill_tree(process), until=until, cap_bytes=cap_bytes, stop=stop)
        finally:
            kill_tree(process)
            shutil.rmtree(temporary, ignore_errors=True)
        text = log.read_text(encoding="utf-8", errors="replace")[-20000:]
        log.unlink()
        if "No module named pip" in text:
            raise DependenciesFailed(f"this agent's interpreter has no pip, so it cannot install the requirements ({self._python})")
        return PipResult(process.returncode, text)


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and all its descendants; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def used_memory(tree: Sequence[psutil.Process], limit: int) -> int:
    """Bytes that the processes hold. Near the limit the exact and slower figure is taken, which counts shared pages once."""
    rough = _sum(tree, lambda process: process.memory_info().rss)
    return rough if rough <= limit else _sum(tree, _proportional)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and everything it started. The launcher is asked first: it also knows orphans that left the group."""
    if process.poll() is None:
        tree = process_tree(process.pid)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        for each in tree:
            _kill(each)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.Error):
        process.kill()


def _sum(tree: Sequence[psutil.Process], measure: Callable[[psutil.Process], int]) -> int:
    total = 0
    for process in tree:
        try:
            total += measure(process)
        except psutil.Error:
            continue
    return total


def _proportional(process: psutil.Process) -> int:
    return getattr(process.memory_full_info(), "pss", 0) or process.memory_info().rss
