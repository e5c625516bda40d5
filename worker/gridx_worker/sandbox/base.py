"""What the runner asks of a sandbox, and what it gets back. Implementations: docker.py, process.py, and a scripted one in the tests."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from gridx_protocol.messages import FailureKind, Isolation

StopReason = Literal["cancelled", "shutdown"]

MODEL_ADVICE = "wrote no model.pth; end your script with torch.save(model.state_dict(), 'model.pth')"


class SandboxUnavailable(Exception):
    """This machine cannot run the sandbox; the message says what is missing and what to do."""


class DependenciesFailed(Exception):
    """The job's requirements could not be installed; the message is for the buyer."""


class PackageNotAllowed(SandboxUnavailable):
    """The provider lets other packages be installed, and not this one: another machine may take the job."""


class Stopped(Exception):
    """The attempt was told to stop while something else than the script was running."""


class OutOfTime(Exception):
    """The attempt's deadline came while something else than the script was running."""


class StopSwitch:
    """One attempt's order to stop: thrown at most once, seen at once by whoever waits for it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._reason: StopReason | None = None
        self.words = ""

    @property
    def reason(self) -> StopReason | None:
        return self._reason

    def throw(self, reason: StopReason, words: str = "") -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason, self.words = reason, words
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def on_throw(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the switch is thrown, at once if it has been."""
        with self._lock:
            self._callbacks.append(callback)
            thrown = self._reason is not None
        if thrown:
            callback()

    def check(self) -> None:
        """Raises Stopped once the switch is thrown."""
        if self._reason is not None:
            raise Stopped(self.words or self._reason)


@dataclass(frozen=True)
class ProviderLimits:
    """What the provider gives to one attempt. `cpus` in cores, memory in bytes."""

    cpus: float = 1.0
    memory_bytes: int = 2048 * 1024**2
    processes: int = 256
    gpu: str | None = None
    """The GPU that one attempt may use, by index or UUID; None: none, whatever the machine has."""

    @property
    def threads(self) -> int:
        return max(int(self.cpus), 1)


@dataclass(frozen=True)
class Work:
    """One attempt as a sandbox sees it. `deadline` is a time.monotonic() value."""

    agent_id: str
    job_id: int
    task_id: int
    attempt: int
    input: Path
    """Folder of read-only inputs: train.py, data.csv, perhaps global_model.pth and schema.json. All are linked into the script's folder."""
    output_name: str
    """The file the script must leave behind: model.pth, or evaluation.json; empty for a rank other than 0, which leaves none."""
    output: Path
    """Where the sandbox puts that file, mode 0600."""
    output_bytes: int
    arguments: Sequence[str]
    environment: Mapping[str, str]
    deadline: float
    packages: Path | None = None
    """What install() returned."""
    outputs: Path | None = None
    """Folder for the files that the script leaves in outputs/; None: they are not taken."""
    outputs_count: int = 0
    outputs_bytes: int = 0
    """Of all of them together."""

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()


@dataclass(frozen=True)
class Taken:
    """A file of outputs/, under a name that the server takes."""

    name: str
    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `kind` None: the script exited with 0, and `size` and `sha256` describe Work.output.

    Otherwise `reason` says why, in words for the buyer; `stopped` is set when the run was ended by its switch.
    """

    kind: FailureKind | None = None
    reason: str = ""
    exit_code: int | None = None
    size: int = 0
    sha256: str = ""
    seconds: float = 0.0
    stopped: StopReason | None = None
    outputs: Sequence[Taken] = ()
    notes: Sequence[str] = ()
    """What the buyer should read at the end of the script's output."""


@dataclass(frozen=True)
class SandboxInfo:
    """What stands in the sandbox. `versions` are those of its libraries, by name."""

    isolation: Isolation
    python_version: str
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    image_id: str | None = None
    gpu: bool = False


class Sandbox(Protocol):
    """Runs attempts, one at a time. Whatever a run started is gone when run() returns."""

    def prepare(self) -> SandboxInfo:
        """Checks that this machine can run it. Raises SandboxUnavailable."""
        ...

    def install(self, requirements: Sequence[str], *, cap_s: float, cap_bytes: int, deadline: float, stop: StopSwitch) -> Path | None:
        """Resolves and installs requirements; the folder of what the sandbox did not have yet, None if it had everything.

        Raises DependenciesFailed, Stopped, OutOfTime, or SandboxUnavailable when the machine itself fails.
        """
        ...

    def run(self, work: Work, *, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        """Runs the script. `on_output` gets its output (both streams) in pieces, from another thread, and must be quick.

        Raises SandboxUnavailable when the machine itself fails. Being told to stop is an Outcome with `stopped` set.
        """
        ...

    def why_unwell(self) -> str | None:
        """Why no attempt could run now, in words for the provider; None when one could."""
        ...

    def roots(self) -> list[int]:
        """Process ids that everything of Grid-X's on this machine descends from, beside the agent itself."""
        ...

    def idle(self) -> None:
        """The agent waits for work: a good time to make ready for it. Returns at once."""
        ...

    def forget(self, job_ids: Collection[int]) -> None:
        """These jobs are over: what is kept for them goes."""
        ...

    def reap(self) -> None:
        """Removes what earlier runs (of a killed agent) left behind, never what is in use."""
        ...

    def close(self) -> None: ...
