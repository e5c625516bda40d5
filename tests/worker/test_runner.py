import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridx_protocol.messages import TaskReply
from gridx_worker.client import Client
from gridx_worker.heartbeat import Current
from gridx_worker.runner import Runner
from gridx_worker.sandbox.base import DependenciesFailed, Outcome, SandboxUnavailable, StopSwitch, Work
from tests.worker.fakes import DATA, SCRIPT, Answer, Call, FakeServer, ScriptedSandbox, event, run_until_stopped, write_output


class Bench:
    """A runner with everything around it."""

    def __init__(self, client: Client, server: FakeServer, folder: Path) -> None:
        self.client, self.server, self.folder = client, server, folder
        self.sandbox = ScriptedSandbox()
        self.phases: list[str] = []
        self.current: Current
        self.runner = self.new_runner()

    def new_runner(self) -> Runner:
        return Runner(
            self.client,
            self.sandbox,
            agent_id="agent-1",
            folder=self.folder,
            cache_bytes=10**7,
            on_phase=lambda: self.phases.append(self.current.phase),
        )

    def start(self, **changes: Any) -> TaskReply:
        task = TaskReply.model_validate(self.server.add_task(**changes))
        assert task.task_id is not None
        assert task.lease_token is not None
        self.current = Current(task_id=task.task_id, lease_token=task.lease_token, stop=StopSwitch())
        return task

    def run(self, **changes: Any) -> str:
        task = self.start(**changes)
        return self.runner.run(task, self.current)

    def plays(self, script: Callable[[Work, Callable[[bytes], None], StopSwitch], Outcome]) -> None:
        self.sandbox.script = script

    def ends(self, outcome: Outcome) -> None:
        self.plays(lambda work, on_output, stop: outcome)

    @property
    def failure(self) -> dict[str, Any]:
        return self.server.of("/agent/fail_task")[-1].json


@pytest.fixture
def bench(client: Client, server: FakeServer, tmp_path: Path) -> Bench:
    return Bench(client, server, tmp_path / "state")


class TestSuccess:
    def test_output_is_uploaded_and_completed(self, bench: Bench, server: FakeServer) -> None:
        assert bench.run() == "VERIFYING"
        assert server.uploads == {"/files/upload-1": b"weights"}
        complete = server.of("/agent/complete_task")[0].json
        assert complete["sha256"] == hashlib.sha256(b"weights").hexdigest()
        assert (complete["size"], complete["lease_token"], complete["train_s"]) == (7, "lease-1", 1.5)
        assert bench.phases == ["DOWNLOADING", "STARTING", "UPLOADING"]

    def test_the_last_lines_travel_beside_the_model_and_before_the_end(self, bench: Bench, server: FakeServer) -> None:
        ended, was_early = threading.Event(), list[bool]()

        def logs(call: Call) -> Answer:
            server.wait_for("/files/upload-1")
            was_early.append(ended.wait(1.0))
            return 200, {"offset": 0}

        def complete(call: Call) -> Answer:
            ended.set()
            return 200, {"status": "VERIFYING"}

        def talk(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(b"the last words\n")
            return write_output(work, on_output, stop)

        server.routes |= {"/agent/logs": logs, "/agent/complete_task": complete}
        bench.plays(talk)
        assert bench.run() == "VERIFYING"
        assert was_early == [False]

    def test_inputs_and_environment_are_those_of_the_contract(self, bench: Bench, server: FakeServer) -> None:
        server.routes |= {"/files/global": lambda call: (200, b"global"), "/files/schema": lambda call: (200, b"{}")}
        bench.run(
            global_model_url="/files/global", global_model_sha256=hashlib.sha256(b"global").hexdigest(), schema_url="/files/schema",
            arguments=["--epochs", "5"], hyperparameters={"lr": 0.1}, round=2, rounds=3, chunk=4, chunks=5, rows=1, seed=9,
        )  # fmt: skip
        assert bench.sandbox.inputs == [{"train.py": SCRIPT, "data.csv": DATA, "global_model.pth": b"global", "schema.json": b"{}"}]
        work = bench.sandbox.works[0]
        assert work.arguments == ["--epochs", "5"]
        expected = {"ROUND": "2", "ROUNDS": "3", "CHUNK": "4", "CHUNKS": "5", "ROWS": "1", "SEED": "9", "HYPERPARAMETERS": '{"lr": 0.1}'}
        assert {name: work.environment[f"GRIDX_{name}"] for name in expected} == expected

    def test_nothing_is_left_behind(self, bench: Bench) -> None:
        bench.run()
        assert list((bench.folder / "attempts").iterdir()) == []

    def test_second_round_downloads_nothing_again(self, bench: Bench, server: FakeServer) -> None:
        bench.run()
        bench.run()
        assert (len(server.of("/files/code")), len(server.of("/files/data"))) == (1, 1)
        assert bench.runner.cache.jobs(64) == [3]

    def test_damaged_cache_is_noticed(self, bench: Bench, server: FakeServer) -> None:
        bench.run()
        for file in (bench.folder / "cache").glob("*/*"):
            file.write_bytes(b"damaged")
        bench.run()
        assert bench.sandbox.inputs[0] == bench.sandbox.inputs[1]

    def test_cache_stays_within_its_bound(self, bench: Bench, server: FakeServer) -> None:
        for number in range(12):
            data = bytes([number]) * 2_000_000
            server.routes["/files/data"] = lambda call, data=data: (200, data)
            bench.run(job_id=number + 1, chunk_bytes=len(data), chunk_sha256=hashlib.sha256(data).hexdigest())
        assert sum(file.stat().st_size for file in (bench.folder / "cache").glob("*/*")) <= 10**7
        assert 12 in bench.runner.cache.jobs(64)
        assert 1 not in bench.runner.cache.jobs(64)

    def test_metrics_and_output_are_streamed(self, bench: Bench, server: FakeServer) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(b"hello\n" + event(work, event="started") + event(work, event="report", epoch=1, loss=0.5, accuracy=0.75))
            server.wait_for("/agent/metrics")  # while the script still runs
            on_output(event(work, event="report", epoch=2, loss=0.25, accuracy=float("nan"), more={"f1": 0.9}) + b"bye\n")
            return write_output(work, on_output, stop)

        bench.plays(script)
        bench.run(hyperparameters={"epochs": 4})
        points = [point for call in server.of("/agent/metrics") for point in call.json["points"]]
        assert [(point["seq"], point["epoch"], point["loss"], point["accuracy"]) for point in points] == [
            (0, 1, 0.5, 0.75),
            (1, 2, 0.25, None),
        ]
        logs = [call.json for call in server.of("/agent/logs")]
        assert "".join(each["text"] for each in logs) == "hello\nbye\n"
        assert [each["offset"] for each in logs] == [0, 6][: len(logs)]
        assert server.of("/agent/complete_task")[0].json["metrics"] == {"loss": 0.25, "f1": 0.9}
        assert bench.phases == ["DOWNLOADING", "STARTING", "TRAINING", "UPLOADING"]
        assert (bench.current.epoch, bench.current.progress) == (2, 0.5)

    def test_giant_output_is_cut_in_the_middle(self, bench: Bench, server: FakeServer) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            for number in range(1000):
                on_output(f"line {number} {'x' * 100}\n".encode())
            return write_output(work, on_output, stop)

        bench.plays(script)
        bench.run(limits={"log_bytes": 20_000})
        text = "".join(call.json["text"] for call in server.of("/agent/logs"))
        assert text.startswith("line 0 ")
        assert "bytes of output left out" in text
        assert "line 999" in text
        assert len(text) < 30_000

    def test_server_down_for_a_while_loses_nothing(self, bench: Bench, server: FakeServer) -> None:
        working = dict(server.routes)
        down = ("/agent/metrics", "/agent/logs", "/agent/upload_url", "/agent/complete_task")

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            server.routes |= {path: lambda call: (503, {}) for path in down}
            on_output(b"one\n" + event(work, event="report", epoch=1, loss=1.0))
            server.wait_for("/agent/metrics", count=2)
            server.routes |= working
            return write_output(work, on_output, stop)

        bench.plays(script)
        assert bench.run() == "VERIFYING"
        accepted = {point["seq"] for call in server.of("/agent/metrics") for point in call.json["points"]}
        assert accepted == {0}
        assert "".join(call.json["text"] for call in server.of("/agent/logs")[-1:]) == "one\n"


class TestFailures:
    def test_traceback_of_the_script_is_the_reason(self, bench: Bench) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(event(work, event="error", traceback="Traceback ...\nKeyError: 'label'\n"))
            return Outcome("script", "the script exited with code 1", 1)

        bench.plays(script)
        assert bench.run() == "script"
        assert (bench.failure["kind"], bench.failure["exit_code"]) == ("script", 1)
        assert "KeyError: 'label'" in bench.failure["reason"]

    def test_traceback_that_is_no_unicode(self, bench: Bench) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(event(work, event="error", traceback="ValueError: \udcff in a file's name\0\n"))
            return Outcome("script", "the script exited with code 1", 1)

        bench.plays(script)
        assert bench.run() == "script"
        assert bench.failure["reason"].endswith("ValueError: ? in a file's name")

    @pytest.mark.parametrize("words", ["a\udcffb", "\0", " \0 ", ""])
    def test_reason_that_the_wire_does_not_take(self, bench: Bench, words: str) -> None:
        bench.ends(Outcome("output", words, 0))
        assert bench.run() == "output"
        assert bench.failure["reason"] == ("a?b" if words.startswith("a") else "output")

    def test_metric_whose_name_is_no_unicode(self, bench: Bench, server: FakeServer) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(event(work, event="report", loss=0.5, more={"\ud800": 1.0}) + b"bye\n")
            return write_output(work, on_output, stop)

        bench.plays(script)
        assert bench.run() == "VERIFYING"
        assert server.of("/agent/complete_task")[0].json["metrics"] == {"loss": 0.5, "?": 1.0}
        assert "".join(call.json["text"] for call in server.of("/agent/logs")) == "bye\n"

    def test_last_output_when_there_is_no_traceback(self, bench: Bench) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(b"usage: train.py --csv CSV\n")
            return Outcome("script", "the script exited with code 2", 2)

        bench.plays(script)
        bench.run()
        assert "exited with code 2" in bench.failure["reason"]
        assert "usage: train.py" in bench.failure["reason"]

    @pytest.mark.parametrize("kind", ["output", "memory", "timeout"])
    def test_what_the_sandbox_says_is_passed_on(self, bench: Bench, kind: Any) -> None:
        bench.ends(Outcome(kind, f"because of {kind}"))
        assert bench.run() == kind
        assert bench.failure["reason"] == f"because of {kind}"

    def test_requirements_that_cannot_be_installed(self, bench: Bench, server: FakeServer) -> None:
        server.routes["/files/req"] = lambda call: (200, b"# mine\nnosuchthing==1\n\n")
        bench.sandbox.install_error = DependenciesFailed("no matching distribution")
        assert bench.run(requirements_url="/files/req") == "dependencies"
        assert bench.sandbox.requirements == [["nosuchthing==1"]]
        assert bench.failure["reason"] == "no matching distribution"

    def test_empty_requirements_need_no_installing(self, bench: Bench, server: FakeServer) -> None:
        server.routes["/files/req"] = lambda call: (200, b"# nothing\n")
        bench.run(requirements_url="/files/req")
        assert "INSTALLING" not in bench.phases

    @pytest.mark.parametrize("error", [SandboxUnavailable("Docker failed"), OSError(28, "No space left on device"), RuntimeError("bug")])
    def test_this_machines_own_trouble(self, bench: Bench, error: Exception) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            raise error

        bench.plays(script)
        assert bench.run() == "agent"
        assert bench.failure["kind"] == "agent"

    def test_missing_input(self, bench: Bench) -> None:
        assert bench.run(chunk_data_url="/files/nowhere") == "agent"
        assert "data.csv could not be downloaded" in bench.failure["reason"]

    def test_deadline_during_the_download(self, bench: Bench, server: FakeServer) -> None:
        server.routes["/files/data"] = lambda call: (503, {})
        assert bench.run(deadline_s=0.2) == "timeout"

    def test_kind_that_this_agent_does_not_know(self, bench: Bench) -> None:
        assert bench.run(kind="rank") == "agent"

    def test_long_reason_is_cut_to_what_the_wire_takes(self, bench: Bench) -> None:
        bench.ends(Outcome("script", "x" * 10_000 + "end", 1))
        bench.run()
        assert len(bench.failure["reason"]) == 4000
        assert bench.failure["reason"].endswith("end")


class TestStopping:
    def test_cancelled_attempt_reports_nothing(self, bench: Bench, server: FakeServer) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            stop.throw("cancelled", "by the buyer")
            return run_until_stopped(work, on_output, stop)

        bench.plays(script)
        assert bench.run() == "cancelled"
        assert server.of("/agent/fail_task") == server.of("/agent/complete_task") == []

    def test_lease_lost_while_reporting_stops_the_script(self, bench: Bench, server: FakeServer) -> None:
        server.routes["/agent/metrics"] = lambda call: (409, {"code": "lease_lost", "detail": "gone"})

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            on_output(event(work, event="report", loss=1.0))
            return run_until_stopped(work, on_output, stop)

        bench.plays(script)
        assert bench.run() == "cancelled"
        assert server.of("/agent/fail_task") == []

    def test_lease_lost_at_the_end(self, bench: Bench, server: FakeServer) -> None:
        server.routes["/agent/complete_task"] = lambda call: (409, {"code": "lease_lost", "detail": "gone"})
        assert bench.run() == "cancelled"
        assert server.of("/agent/fail_task") == []

    def test_shutdown_is_reported(self, bench: Bench) -> None:
        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            stop.throw("shutdown", "told to stop")
            return run_until_stopped(work, on_output, stop)

        bench.plays(script)
        assert bench.run() == "shutdown"
        assert bench.failure["kind"] == "shutdown"

    def test_shutdown_while_the_agent_itself_stops(self, bench: Bench, server: FakeServer, stop: threading.Event) -> None:
        stop.set()  # no retries for polling any more, but the outcome is still reported, also past one failure
        answers = [(503, {}), (200, {})]
        server.routes["/agent/complete_task"] = lambda call: answers.pop(0) if answers[0][0] == 503 else (200, {"status": "VERIFYING"})
        assert bench.run() == "VERIFYING"

    def test_leftovers_of_a_killed_agent_are_cleaned(self, bench: Bench) -> None:
        left = bench.folder / "attempts" / "1-1" / "input"
        left.mkdir(parents=True)
        (left / "old").touch()
        bench.runner = bench.new_runner()
        assert bench.run() == "VERIFYING"
        assert "old" not in bench.sandbox.inputs[0]


class TestEvaluation:
    def test_numbers_of_the_script_become_the_metrics(self, bench: Bench, server: FakeServer) -> None:
        bench.plays(lambda work, on_output, stop: write_output(work, on_output, stop, b'{"accuracy": 0.5, "bad": NaN}'))
        assert bench.run(kind="evaluate") == "VERIFYING"
        assert bench.sandbox.works[0].output_name == "evaluation.json"
        assert server.of("/agent/complete_task")[0].json["metrics"] == {"accuracy": 0.5}

    @pytest.mark.parametrize("content", [b"[1]", b"{", b'{"accuracy": "high"}', b'{"accuracy": null}'])
    def test_a_script_that_writes_its_own(self, bench: Bench, content: bytes) -> None:
        bench.plays(lambda work, on_output, stop: write_output(work, on_output, stop, content))
        assert bench.run(kind="evaluate") == "output"
