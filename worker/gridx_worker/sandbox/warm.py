"""A container that stays between a job's subtasks: its launcher has the libraries in memory, and forks a fresh child for each script."""

import contextlib
import logging
import shutil
import socket
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import requests
from docker import DockerClient
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from docker.utils.socket import STDOUT, SocketError, frames_iter

from gridx_worker.files import place
from gridx_worker.sandbox.base import Outcome, ProviderLimits, SandboxUnavailable, StopSwitch, Work
from gridx_worker.sandbox.container import MB, find_differences
from gridx_worker.sandbox.docker_api import BlockStream, forgiving
from gridx_worker.sandbox.launch import Ended, Launcher, LauncherEnded, follow
from gridx_worker.sandbox.output import BadOutput, copy_capped, describe_exit, out_of_memory, out_of_time
from gridx_worker.sandbox.outputs import FOLDER, Outputs

log = logging.getLogger(__name__)

INPUT, WORK = "/input", "/work"


class NotStarted(SandboxUnavailable):
    """The container ended before the script was begun: another one can run it."""


class WarmContainer:
    """Made from a created container; `inputs` is the agent's folder that the container sees, read-only, as /input.

    `expires` (time.time()) is when anybody's reaper may take it away. After a run it is either `is_usable` or to be removed.
    """

    def __init__(self, client: DockerClient, container: Container, inputs: Path, limits: ProviderLimits, expires: float) -> None:
        self._client, self._container, self._inputs, self._limits = client, container, inputs, limits
        self.expires = expires
        self.is_usable = False
        self._socket: socket.socket | None = None
        self._launcher = Launcher(self._send)
        self._runs = 0
        self._has_ended = threading.Event()

    @property
    def name(self) -> str:
        return str(self._container.name)

    def start(self, asked: dict[str, Any]) -> None:
        """Starts it and waits for its launcher, after a look at whether it is what was asked for. Raises SandboxUnavailable."""
        self._container.reload()
        if differences := find_differences(self._container.attrs, asked):
            raise SandboxUnavailable(f"Docker made another container than the one that was asked for: {'; '.join(differences)}")
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached: Any = self._client.api.attach_socket(self.name, params=streams)
        self._socket = getattr(attached, "_sock", attached)
        assert self._socket is not None
        self._socket.settimeout(None)
        threading.Thread(target=self._read, args=(attached,), name="container", daemon=True).start()
        self._container.start()
        try:
            self._launcher.wait_until_ready()
        except LauncherEnded as error:
            raise SandboxUnavailable(f"the sandbox image does not run its launcher: {error}") from error
        self.is_usable = True

    def run(self, work: Work, *, packages: str | None, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
        """Runs one script. Raises SandboxUnavailable when the machine fails it."""
        self.is_usable = False
        self._runs += 1
        name = f"{self._runs}-{work.task_id}-{work.attempt}"
        (self._inputs / name).mkdir(mode=0o755)
        for file in work.input.iterdir():
            place(file, self._inputs / name / file.name)
        try:
            self._launcher.run(work, folder=f"{WORK}/{name}", inputs=f"{INPUT}/{name}", packages=packages, on_output=on_output)
        except LauncherEnded as error:
            raise NotStarted(f"the container failed: {error}") from error
        started = time.monotonic()
        try:
            ended = follow(self._launcher, work, stop)
        except LauncherEnded as error:
            return self._explain_end(error, time.monotonic() - started)
        seconds = time.monotonic() - started
        if ended is None:
            forgiving(self._container.kill)  # the agent's own timer, or an order to stop: nothing inside can hold it up
            return Outcome(reason=stop.words, seconds=seconds, stopped=stop.reason) if stop.reason else out_of_time(seconds=seconds)
        outcome = self._judge(ended, seconds)
        if outcome.kind is None and work.output_name:
            outcome = self._take_output(f"{WORK}/{name}", work, outcome, has_outputs=ended.has_outputs)
        self._forget(self._inputs / name)
        return outcome

    def close(self) -> None:
        """Lets go of the container, which its owner has removed."""
        self.is_usable = False
        if self._socket is not None:
            self._socket.close()

    def _judge(self, ended: Ended, seconds: float) -> Outcome:
        if ended.out_of_time:
            return out_of_time(seconds=seconds)
        if ended.code == 0:
            return Outcome(exit_code=0, seconds=seconds)
        if ended.out_of_memory:
            return out_of_memory(self._limits.memory_bytes, ended.code, seconds=seconds)
        return describe_exit(ended.code, seconds=seconds)

    def _explain_end(self, error: LauncherEnded, seconds: float) -> Outcome:
        """The container itself ended while a script ran."""
        try:
            self._container.reload()
            state: dict[str, Any] = self._container.attrs["State"]
        except NotFound:
            raise SandboxUnavailable("the container was removed while the script ran") from error
        if state.get("OOMKilled"):
            return out_of_memory(self._limits.memory_bytes, int(state["ExitCode"]), seconds=seconds)
        raise SandboxUnavailable(f"Docker ended the script's container, as when it is stopped or restarted ({error})") from error

    def _take_output(self, folder: str, work: Work, outcome: Outcome, *, has_outputs: bool) -> Outcome:
        """Reads exactly the expected file. The script and all it started are dead; what they left there may be anything."""
        try:
            with self._launcher.taking(folder, work.output_name, work.output_bytes) as (size, read):
                size, digest = copy_capped(read, work.output_name, work.output, size=size, cap=work.output_bytes)
        except BadOutput as error:
            return replace(outcome, kind="output", reason=str(error))
        except LauncherEnded as error:
            raise SandboxUnavailable(f"the container ended before its file was read ({error})") from error
        outputs = Outputs(work)
        if work.outputs is not None and has_outputs:  # each look into a container costs some 80 ms
            with contextlib.suppress(NotFound):
                blocks, _ = self._container.get_archive(f"{folder}/{FOLDER}", chunk_size=MB)
                with tarfile.open(fileobj=cast(Any, BlockStream(blocks)), mode="r|") as archive:
                    outputs.take_from_archive(archive)
        return replace(outcome, size=size, sha256=digest, outputs=outputs.taken, notes=outputs.notes)

    def _forget(self, inputs: Path) -> None:
        """The next script must find nothing of this one's; where that cannot be had, the container is not used again."""
        shutil.rmtree(inputs, ignore_errors=True)
        try:
            self._launcher.wipe()
        except LauncherEnded as error:
            log.info("a container is given up", extra={"container": self.name, "cause": str(error)})
            return
        self.is_usable = True

    def settle(self) -> bool:
        """Whether it is ready for another script: what the last one left is gone."""
        if self.is_usable:
            try:
                self._launcher.settle()
            except LauncherEnded as error:
                log.info("a container is given up", extra={"container": self.name, "cause": str(error)})
                self.is_usable = False
        return self.is_usable and not self._has_ended.is_set()

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(data)

    def _read(self, attached: Any) -> None:
        try:
            for stream, data in frames_iter(attached, tty=False):
                (self._launcher.on_output if stream == STDOUT else self._launcher.on_answers)(data)
        except (DockerException, SocketError, requests.RequestException, OSError, ValueError) as error:
            log.debug("a container's streams ended", extra={"container": self.name, "cause": str(error)})
        finally:
            self._has_ended.set()
            self._launcher.on_end()
