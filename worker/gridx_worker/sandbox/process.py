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
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import psutil

import gridx_worker.task
from gridx_worker.dependencies import PipResult, PipSettings, install, watch_until_done
from gridx_worker.sandbox.base import DependenciesFailed, Outcome, ProviderLimits, SandboxInfo, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.launch import Ended, Launcher, LauncherEnded
from gridx_worker.sandbox.output import BadOutput, describe_exit, out_of_memory, out_of_time, take_file
from gridx_worker.sandbox.outputs import Outputs

WATCH_S = 0.2
LIBRARIES = ("torch", "numpy", "pandas")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LD_LIBRARY_PATH")
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

    def __init__(self, *, folder: Path, limits: ProviderLimits, python: Path | None = None, pip: PipSettings | None = None) -> None:
        self._pip = pip or PipSettings()
        self._python = str(python or sys.executable)
        self._runs = folder / "runs"
        self._packages = folder / "packages"
        self._limits = limits
        self._info: SandboxInfo | None = None
        self._in_use: Path | None = None
        self._process: tuple[subprocess.Popen[bytes], Launcher] | None = None

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
        gpu = self._limits.gpu is not None and not found["versions"]["torch"].endswith("+cpu")
        self._info = SandboxInfo(isolation="process", python_version=found["python"], versions=found["versions"], gpu=gpu)
        self.reap()
        return self._info

    def install(self, requirements: Sequence[str], *, cap_s: float, cap_bytes: int, deadline: float, stop: StopSwitch) -> Path | None:
        info = self._info or self.prepare()
        key = json.dumps([self._python, info.python_version, dict(sorted(info.versions.items()))])
        return install(
            requirements, _HostPip(self._python), cache=self._packages, sandbox_key=key, installed=info.versions,
            cap_s=cap_s, cap_bytes=cap_bytes, deadline=deadline, stop=stop, settings=self._pip,
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

    def why_unwell(self) -> str | None:
        return None

    def roots(self) -> list[int]:
        """The launcher is the agent's own child."""
        return []

    def idle(self) -> None:
        """Nothing to do: the launcher of the last script, which has the libraries in memory, is still there."""

    def forget(self, job_ids: Collection[int]) -> None:
        """Nothing is kept for a job."""

    def close(self) -> None:
        self._end_launcher()
        self.reap()

    def _run(self, work: Work, folder: Path, temporary: Path, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        packages = str(work.packages) if work.packages else None
        mine = {"HOME": str(temporary), "TMPDIR": str(temporary)}
        work = replace(work, environment=mine | dict(work.environment))
        started = time.monotonic()
        try:
            launcher = self._launched()
            try:
                pid = launcher.run(work, folder=str(folder), inputs=str(work.input), packages=packages, on_output=on_output)
            except LauncherEnded:  # it died between two scripts
                self._end_launcher()
                launcher = self._launched()
                pid = launcher.run(work, folder=str(folder), inputs=str(work.input), packages=packages, on_output=on_output)
            started = time.monotonic()
            found = self._watch(launcher, pid, work, stop, started)
        except LauncherEnded as error:
            self._end_launcher()
            raise SandboxUnavailable(str(error)) from error
        if isinstance(found, Outcome):
            self._end_launcher()  # and with it whatever the script started
            return found
        return self._finish(work, folder, found.code, time.monotonic() - started)

    def _launched(self) -> Launcher:
        """The launcher, started when there is none; it has the libraries in memory. Raises SandboxUnavailable."""
        if self._process is not None and self._process[0].poll() is None:
            return self._process[1]
        self._end_launcher()
        self._runs.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [self._python, "-u", str(Path(gridx_worker.task.__file__).with_name("launcher.py"))],
            cwd=self._runs, env=self._environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        orders = process.stdin.fileno()
        launcher = Launcher(lambda data: _write_all(orders, data))
        for pipe, on_data in ((process.stdout, launcher.on_output), (process.stderr, launcher.on_answers)):
            threading.Thread(target=_pump, args=(pipe, on_data, launcher.on_end), name="launcher", daemon=True).start()
        self._process = process, launcher
        try:
            launcher.wait_until_ready()
        except LauncherEnded as error:
            self._end_launcher()
            raise SandboxUnavailable(f"{self._python} does not run the launcher: {error}") from error
        return launcher

    def _end_launcher(self) -> None:
        if self._process is not None:
            process, self._process = self._process[0], None
            kill_tree(process)
            with contextlib.suppress(OSError):  # what was not read any more
                cast(IO[bytes], process.stdin).close()

    def _watch(self, launcher: Launcher, pid: int, work: Work, stop: StopSwitch, started: float) -> Ended | Outcome:
        """Waits for the end; an Outcome when it is to be ended from here. Raises LauncherEnded."""
        stop.on_throw(launcher.stop_waiting)
        while True:
            ended = launcher.wait(max(min(WATCH_S, work.seconds_left), 0.005))
            if ended is not None:
                return out_of_time(seconds=time.monotonic() - started) if ended.out_of_time else ended
            seconds = time.monotonic() - started
            if stop.reason:
                return Outcome(reason=stop.words, seconds=seconds, stopped=stop.reason)
            if work.seconds_left <= 0:
                return out_of_time(seconds=seconds)
            tree = process_tree(pid)
            if used_memory(tree, self._limits.memory_bytes) > self._limits.memory_bytes:
                return out_of_memory(self._limits.memory_bytes, None, seconds=seconds)
            if len(tree) > self._limits.processes:
                return Outcome("script", f"the script started more than {self._limits.processes} processes", seconds=seconds)

    def _finish(self, work: Work, folder: Path, code: int, seconds: float) -> Outcome:
        if code != 0:
            return describe_exit(code, seconds=seconds)
        if not work.output_name:
            return Outcome(exit_code=0, seconds=seconds)
        try:
            size, digest = take_file(folder, work.output_name, work.output, work.output_bytes)
        except BadOutput as error:
            return Outcome("output", str(error), 0, seconds=seconds)
        outputs = Outputs(work)
        outputs.take_from_folder(folder)
        return Outcome(exit_code=0, size=size, sha256=digest, seconds=seconds, outputs=outputs.taken, notes=outputs.notes)

    def _environment(self) -> dict[str, str]:
        """The launcher's; each script gets its own on top."""
        threads = str(self._limits.threads)
        # Memory is watched from outside; the limit on data is a second belt, wide enough for what PyTorch reserves without using it.
        data = 2 * self._limits.memory_bytes + 4 * 1024**3
        rlimits = {"FSIZE": self._limits.memory_bytes + 64 * 1024**2, "NOFILE": 4096, "CORE": 0, "DATA": data}
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), threads),
            "CUDA_VISIBLE_DEVICES": self._limits.gpu or "",
            "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "GRIDX_THREADS": threads, "GRIDX_PARENT": str(os.getpid()),
            "GRIDX_RLIMITS": json.dumps(rlimits),
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


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _pump(pipe: IO[bytes], on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    with pipe:
        while block := os.read(pipe.fileno(), 65536):
            on_data(block)
    on_end()


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
