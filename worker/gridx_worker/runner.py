"""One attempt from its download to its report."""

import json
import logging
import math
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from gridx_protocol.messages import CompleteRequest, FailRequest, FailureKind, OutputUrlRequest, Phase, TaskReply, UploadUrlRequest
from gridx_worker.client import CallFailed, Client, LeaseLost, TooLarge
from gridx_worker.files import LARGEST_INPUT, Cache, Fetch, NoSpace, require_space
from gridx_worker.heartbeat import Current
from gridx_worker.reporting import SHUTDOWN_PATIENCE_S, Reporter
from gridx_worker.sandbox.base import DependenciesFailed, Outcome, OutOfTime, Sandbox, SandboxUnavailable, Stopped, Work

log = logging.getLogger(__name__)

CODE_CAP = 16 * 1024**2
REQUIREMENTS_CAP = 1024**2
SCHEMA_CAP = 256 * 1024**2
EVALUATION_CAP = 64 * 1024
REPORT_PATIENCE_S = 120.0
"""How long after the deadline a failure is still reported: the server may be restarting."""
OUTPUT_NAMES = {"train": "model.pth", "evaluate": "evaluation.json"}


class Failure(Exception):
    """The attempt failed, as the server will be told."""

    def __init__(self, kind: FailureKind, reason: str, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind
        self.reason = reason
        self.exit_code = exit_code


class Runner:
    """Runs attempts, one at a time. `on_phase` is called whenever the attempt enters another phase."""

    def __init__(
        self, client: Client, sandbox: Sandbox, *, agent_id: str, folder: Path, cache_bytes: int, on_phase: Callable[[], None]
    ) -> None:
        self._client, self._sandbox, self._agent_id = client, sandbox, agent_id
        self._attempts = folder / "attempts"
        self.cache = Cache(folder / "cache", cap_bytes=cache_bytes)
        self._on_phase = on_phase
        self.make_reporter: Callable[..., Reporter] = Reporter
        shutil.rmtree(self._attempts, ignore_errors=True)  # of a killed agent; the server hands the same attempt out again

    def run(self, task: TaskReply, current: Current) -> str:
        """Runs the attempt and reports how it ended; never raises for what a job, a server or a network can do.

        Returns what happened in one word for the log: the server's status, a failure kind, `cancelled` or `unreported`.
        """
        deadline = time.monotonic() + task.deadline_s
        folder = self._attempts / f"{task.task_id}-{task.attempt}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            (folder / "input").mkdir(parents=True)
            return self._run(task, current, folder, deadline)
        except Failure as failure:
            return self._report_failure(current, failure, deadline)
        except LeaseLost as error:
            current.stop.throw("cancelled", str(error))
            return "cancelled"
        except Stopped as error:
            return self._report_stop(current, str(error), deadline)
        except OutOfTime as error:
            return self._report_failure(current, Failure("timeout", str(error)), deadline)
        except DependenciesFailed as error:
            return self._report_failure(current, Failure("dependencies", str(error)), deadline)
        except (SandboxUnavailable, CallFailed, NoSpace, OSError) as error:
            log.warning("attempt failed on this machine", extra={"task_id": current.task_id}, exc_info=not isinstance(error, CallFailed))
            return self._report_failure(current, Failure("agent", _own_trouble(error)), deadline)
        except Exception as error:
            log.exception("attempt failed unexpectedly", extra={"task_id": current.task_id})
            return self._report_failure(current, Failure("agent", f"unexpected {type(error).__name__}: {error}"), deadline)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, task: TaskReply, current: Current, folder: Path, deadline: float) -> str:
        output_name = OUTPUT_NAMES.get(task.kind)
        if output_name is None:
            raise Failure("agent", f"this agent does not run subtasks of kind {task.kind}")
        requirements = self._download(task, current, folder, deadline)
        packages = None
        if requirements:
            self._enter(current, "INSTALLING")
            packages = self._sandbox.install(
                requirements, cap_s=task.limits.install_s, cap_bytes=task.limits.install_bytes, deadline=deadline, stop=current.stop
            )
        mark = secrets.token_hex(16)
        work = Work(
            agent_id=self._agent_id, job_id=task.job_id or 0, task_id=current.task_id, attempt=task.attempt, input=folder / "input",
            output_name=output_name, output=folder / output_name, output_bytes=task.limits.output_bytes, arguments=task.arguments,
            environment=script_environment(task, mark), deadline=deadline, packages=packages,
            outputs=folder / "outputs" if task.kind == "train" else None,
            outputs_count=task.limits.outputs_count, outputs_bytes=task.limits.outputs_bytes,
        )  # fmt: skip
        outcome, reporter = self._train(task, current, work, mark)
        if outcome.stopped:
            raise Stopped(outcome.reason)
        if outcome.kind:
            raise Failure(outcome.kind, explain(outcome, reporter), outcome.exit_code)
        return self._deliver(current, work, outcome, reporter, deadline)

    def _download(self, task: TaskReply, current: Current, folder: Path, deadline: float) -> list[str]:
        """Fills folder/input; returns the lines of requirements.txt."""
        self._enter(current, "DOWNLOADING")
        require_space(folder, (task.chunk_bytes or 0) + min(task.limits.output_bytes, 64 * 1024**2))
        inputs = folder / "input"
        wanted = [
            (task.code_url, task.code_sha256, CODE_CAP, inputs / "train.py"),
            (task.chunk_data_url, task.chunk_sha256, task.chunk_bytes or LARGEST_INPUT, inputs / "data.csv"),
            (task.global_model_url, task.global_model_sha256, LARGEST_INPUT, inputs / "global_model.pth"),
            (task.schema_url, None, SCHEMA_CAP, inputs / "schema.json"),
            (task.requirements_url, None, REQUIREMENTS_CAP, folder / "requirements.txt"),
        ]
        for url, sha256, cap, target in wanted:
            if url:
                fetch = Fetch(url=url, sha256=sha256, cap=cap, until=deadline, check=current.stop.check)
                try:
                    self.cache.fetch(self._client, task.job_id or 0, fetch, target)
                except (CallFailed, TooLarge) as error:
                    if time.monotonic() >= deadline - 1:
                        raise OutOfTime(f"the time limit came while {target.name} was being downloaded") from error
                    raise Failure("agent", f"{target.name} could not be downloaded: {error}") from error
        if not (inputs / "train.py").exists():
            raise Failure("agent", "the server named no script to run")
        file = folder / "requirements.txt"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def _train(self, task: TaskReply, current: Current, work: Work, mark: str) -> tuple[Outcome, Reporter]:
        """Runs the script. When that went well, the reporter's last batch is still on its way: `wait` for it before the attempt ends."""
        self._enter(current, "STARTING")
        reporter = self.make_reporter(
            self._client, current, mark=mark, log_bytes=task.limits.log_bytes, epochs=_epochs(task), deadline=work.deadline,
            on_started=lambda: self._note(current, "TRAINING"),
        )  # fmt: skip
        went_well = False
        try:
            outcome = self._sandbox.run(work, on_output=reporter.feed, stop=current.stop)
            for note in outcome.notes:
                reporter.feed(f"{note}\n".encode())
            if outcome.kind is None and not outcome.stopped:
                self._enter(current, "UPLOADING")
                went_well = True
            return outcome, reporter
        finally:
            reporter.close(patience_s=SHUTDOWN_PATIENCE_S if current.stop.reason else 30.0)
            if not went_well:
                reporter.wait()

    def _deliver(self, current: Current, work: Work, outcome: Outcome, reporter: Reporter, deadline: float) -> str:
        """Uploads and completes, again and again until it succeeds, the lease is lost or the deadline comes."""
        try:
            metrics = final_metrics(work, reporter)
            for file in outcome.outputs:
                announced = OutputUrlRequest(
                    task_id=current.task_id, lease_token=current.lease_token, name=file.name, size=file.size, sha256=file.sha256
                )
                self._client.upload(announced, file.path, until=deadline, check=current.stop.check)
            if work.output_name != OUTPUT_NAMES["evaluate"]:  # an evaluation's numbers travel in the report
                place = UploadUrlRequest(task_id=current.task_id, lease_token=current.lease_token, size=outcome.size)
                self._client.upload(place, work.output, until=deadline, check=current.stop.check)
        finally:
            reporter.wait()
        request = CompleteRequest(
            task_id=current.task_id,
            lease_token=current.lease_token,
            sha256=outcome.sha256,
            size=outcome.size,
            metrics=metrics,
            train_s=outcome.seconds,
        )
        return self._client.complete(request, until=deadline).status

    def _report_failure(self, current: Current, failure: Failure, deadline: float) -> str:
        if current.stop.reason == "cancelled":
            return "cancelled"
        log.info("attempt failed", extra={"task_id": current.task_id, "kind": failure.kind, "reason": failure.reason[:300]})
        patience = SHUTDOWN_PATIENCE_S if failure.kind == "shutdown" else REPORT_PATIENCE_S
        until = max(deadline, time.monotonic()) + patience if failure.kind != "shutdown" else time.monotonic() + patience
        request = FailRequest(
            task_id=current.task_id,
            lease_token=current.lease_token,
            kind=failure.kind,
            reason=_sendable(failure.reason) or failure.kind,
            exit_code=failure.exit_code,
        )
        try:
            self._client.fail(request, until=until)
        except LeaseLost:
            return "cancelled"
        except CallFailed as error:
            log.warning("the failure could not be reported", extra={"task_id": current.task_id, "cause": str(error)})
            return "unreported"
        return failure.kind

    def _report_stop(self, current: Current, words: str, deadline: float) -> str:
        if current.stop.reason == "shutdown":
            return self._report_failure(current, Failure("shutdown", "the agent was told to stop"), deadline)
        log.info("attempt cancelled", extra={"task_id": current.task_id, "reason": words})
        return "cancelled"

    def _enter(self, current: Current, phase: Phase) -> None:
        current.stop.check()
        self._note(current, phase)

    def _note(self, current: Current, phase: Phase) -> None:
        current.phase = phase
        self._on_phase()


def script_environment(task: TaskReply, mark: str) -> dict[str, str]:
    """What the training contract promises a script, and what launcher.py needs."""
    return {
        "GRIDX_ROUND": str(task.round),
        "GRIDX_ROUNDS": str(task.rounds),
        "GRIDX_CHUNK": str(task.chunk),
        "GRIDX_CHUNKS": str(task.chunks),
        "GRIDX_ROWS": str(task.rows),
        "GRIDX_SEED": str(task.seed),
        "GRIDX_HYPERPARAMETERS": json.dumps(task.hyperparameters),
        "GRIDX_KIND": task.kind,
        "GRIDX_MARK": mark,
    }


def _own_trouble(error: Exception) -> str:
    """What this machine lacks, in words for a buyer: without the paths of its disk."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _sendable(reason: str) -> str:
    """The end of a reason that may quote anything: file names, a script's words."""
    return reason.encode(errors="replace").decode().replace("\x00", "").strip()[-4000:]


def explain(outcome: Outcome, reporter: Reporter) -> str:
    """Why the script failed: its traceback or, without one, its last lines, below one sentence of ours."""
    error = reporter.error
    if outcome.kind == "script" and error:
        return f"{outcome.reason}\n{error.get('traceback', '')}"
    if outcome.kind in ("script", "memory") and (lines := reporter.recent(2000)):
        return f"{outcome.reason}\nIts last output:\n{lines}"
    return outcome.reason


def final_metrics(work: Work, reporter: Reporter) -> dict[str, float]:
    """The last report's numbers; of an evaluation what the script's evaluate() returned. At most 32, finite ones only."""
    if work.output_name == "evaluation.json":
        if work.output.stat().st_size > EVALUATION_CAP:
            raise Failure("output", f"evaluation.json has more than {EVALUATION_CAP} bytes")
        try:
            found: dict[str, float] = json.loads(work.output.read_bytes())
            numbers = {str(name)[:64]: float(value) for name, value in list(found.items())[:32]}
        except (ValueError, TypeError, AttributeError) as error:
            raise Failure("output", "evaluation.json does not hold the numbers that evaluate() returns") from error
        return {name: value for name, value in numbers.items() if math.isfinite(value)}
    last = reporter.last
    if last is None:
        return {}
    named = {"loss": last.loss, "accuracy": last.accuracy}
    return dict(list(({name: value for name, value in named.items() if value is not None} | last.more).items())[:32])


def _epochs(task: TaskReply) -> int | None:
    value = task.hyperparameters.get("epochs")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
