import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gridx_worker.agent import Agent, CannotRun
from gridx_worker.config import Config
from gridx_worker.controls import WorkingHours
from gridx_worker.doctor import report
from gridx_worker.doctor.report import Check, Findings
from gridx_worker.sandbox.base import Outcome, StopSwitch, Work
from gridx_worker.state import Identity, State
from tests.worker.fakes import WAIT_S, FakeServer, ScriptedSandbox, run_until_stopped, write_output


class Running:
    """An agent in a thread of its own; leaving the block stops it."""

    def __init__(self, config: Config, sandbox: ScriptedSandbox) -> None:
        self.state = State(config.state_dir)
        self.agent = Agent(config, sandbox, self.state)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.agent.run()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self.agent.shut_down()
        self.join()

    def join(self) -> None:
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()

    def close(self) -> None:
        if self.thread.is_alive():
            self.agent.shut_down()
            self.agent.shut_down()
            self.join()
        self.state.close()


Start = Callable[..., Running]


@pytest.fixture
def sandbox() -> ScriptedSandbox:
    return ScriptedSandbox()


@pytest.fixture
def start(make_config: Callable[..., Config], sandbox: ScriptedSandbox) -> Iterator[Start]:
    agents: list[Running] = []

    def make(**changes: Any) -> Running:
        agents.append(Running(make_config(**changes), sandbox))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


class TestRegistration:
    def test_registers_with_the_key_and_works_with_the_token(self, start: Start, server: FakeServer) -> None:
        start()
        server.wait_for("/agent/request_task")
        registration = server.of("/agent/register")[0]
        assert registration.token == "key-1"
        assert registration.json["agent_id"] == "agent-1"
        assert registration.json["hardware"]["torch_version"] == "2.13.0"
        assert server.of("/agent/request_task")[0].token == "token-1"

    def test_returns_with_the_same_identity(self, start: Start, server: FakeServer) -> None:
        first = start()
        server.wait_for("/agent/request_task")
        first.close()
        start(key=None)
        server.wait_for("/agent/request_task", count=len(server.of("/agent/request_task")) + 1)
        assert len(server.of("/agent/register")) == 1

    def test_without_key_and_identity_it_says_what_is_missing(self, start: Start) -> None:
        agent = start(key=None)
        agent.join()
        assert isinstance(agent.error, CannotRun)
        assert "--key" in str(agent.error)

    def test_revoked_key(self, start: Start, server: FakeServer) -> None:
        server.routes["/agent/register"] = lambda call: (401, {"code": "bad_key", "detail": "this key was revoked"})
        agent = start()
        agent.join()
        assert isinstance(agent.error, CannotRun)
        assert "this key was revoked" in str(agent.error)

    def test_name_of_another_seller(self, start: Start, server: FakeServer) -> None:
        server.routes["/agent/register"] = lambda call: (409, {"code": "taken", "detail": "agent-1 belongs to another seller"})
        agent = start()
        agent.join()
        assert "--name" in str(agent.error)

    def test_refused_token_is_replaced(self, start: Start, server: FakeServer, make_config: Callable[..., Config]) -> None:
        state = State(make_config().state_dir)
        state.save(Identity("agent-1", server.url, "old"))
        state.close()
        idle = server.routes["/agent/request_task"]
        server.routes["/agent/request_task"] = lambda call: (401, {"code": "t", "detail": "unknown"}) if call.token == "old" else idle(call)
        agent = start()
        server.wait_for("/agent/request_task", lambda call: call.token == "token-1")
        identity = agent.state.load(server=server.url)
        assert identity is not None
        assert identity.token == "token-1"

    def test_refused_for_good_it_ends_and_forgets_the_token(self, start: Start, server: FakeServer) -> None:
        agent = start()
        server.wait_for("/agent/request_task")
        for path in ("/agent/register", "/agent/heartbeat", "/agent/request_task"):
            server.routes[path] = lambda call: (401, {"code": "revoked", "detail": "the key was revoked"})
        agent.join()
        assert isinstance(agent.error, CannotRun)
        assert agent.state.load(server=server.url) is None


class TestWork:
    def test_asks_again_right_after_a_task(self, start: Start, server: FakeServer) -> None:
        for _ in range(3):
            server.add_task()
        start()
        server.wait_for("/agent/complete_task", count=3)

    def test_heartbeats_go_on_beside_training_and_carry_the_attempt(
        self, start: Start, server: FakeServer, sandbox: ScriptedSandbox
    ) -> None:
        server.add_task()
        release = threading.Event()

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            assert release.wait(WAIT_S)
            return write_output(work, on_output, stop)

        sandbox.script = script
        start()
        beat = server.wait_for("/agent/heartbeat", lambda call: call.json["task_id"] == 1, count=3)
        assert (beat.json["lease_token"], beat.json["phase"]) == ("lease-1", "STARTING")
        release.set()
        server.wait_for("/agent/complete_task")
        server.wait_for("/agent/heartbeat", lambda call: call.json["task_id"] is None)

    def test_cancel_stops_the_script_at_once_and_the_agent_goes_on(
        self, start: Start, server: FakeServer, sandbox: ScriptedSandbox
    ) -> None:
        first = server.add_task()
        sandbox.script = run_until_stopped
        server.routes["/agent/heartbeat"] = lambda call: (
            200,
            {"heartbeat_s": 0.05, "poll_s": 0.05, "cancel": call.json["task_id"] == 1, "cancel_reason": "the buyer cancelled"},
        )
        start()
        server.wait_for("/agent/heartbeat", lambda call: call.json["task_id"] == 1)
        first["gone"] = True
        sandbox.script = write_output
        server.add_task()
        server.wait_for("/agent/complete_task", lambda call: call.json["task_id"] == 2)
        assert server.of("/agent/fail_task") == []

    def test_lease_lost_by_heartbeat_stops_the_script(self, start: Start, server: FakeServer, sandbox: ScriptedSandbox) -> None:
        task = server.add_task()
        sandbox.script = run_until_stopped
        idle = server.routes["/agent/heartbeat"]
        server.routes["/agent/heartbeat"] = lambda call: (
            (409, {"code": "lost", "detail": "lost"}) if call.json["task_id"] == 1 else idle(call)
        )
        start()
        server.wait_for("/agent/heartbeat", lambda call: call.json["task_id"] == 1)
        task["gone"] = True
        sandbox.script = write_output
        server.add_task()
        server.wait_for("/agent/complete_task")
        assert server.of("/agent/fail_task") == []

    def test_server_sets_the_intervals(self, start: Start, server: FakeServer) -> None:
        start(heartbeat_s=3600.0, poll_s=3600.0)  # its own would show nothing within the test's time
        server.wait_for("/agent/heartbeat", count=3)
        server.wait_for("/agent/request_task", count=3)

    def test_lost_reply_gives_the_same_attempt_again(self, start: Start, server: FakeServer) -> None:
        server.add_task()
        answer = server.routes["/agent/request_task"]
        broken = [True]
        server.routes["/agent/request_task"] = lambda call: (0, b"") if broken and broken.pop() else answer(call)
        start()
        server.wait_for("/agent/complete_task")
        assert len(server.of("/agent/complete_task")) == 1


class TestWaiting:
    def test_a_call_that_is_held_open_is_time_to_make_the_next_sandbox_ready(
        self, start: Start, server: FakeServer, sandbox: ScriptedSandbox
    ) -> None:
        released = threading.Event()
        answer = server.routes["/agent/request_task"]
        server.routes["/agent/request_task"] = lambda call: answer(call) if released.wait(WAIT_S) else (500, {})
        start()
        assert sandbox.idled.acquire(timeout=WAIT_S)  # at its start
        assert sandbox.idled.acquire(timeout=WAIT_S)  # while it waits
        released.set()


class TestShutDown:
    def test_idle_agent_ends_at_once(self, start: Start, server: FakeServer, sandbox: ScriptedSandbox) -> None:
        agent = start()
        server.wait_for("/agent/request_task")
        agent.stop()
        assert agent.error is None
        assert sandbox.closed

    def test_first_signal_lets_the_attempt_finish(self, start: Start, server: FakeServer, sandbox: ScriptedSandbox) -> None:
        server.add_task()
        server.add_task()
        running, release = threading.Event(), threading.Event()

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            running.set()
            assert release.wait(WAIT_S)
            return write_output(work, on_output, stop)

        sandbox.script = script
        agent = start()
        assert running.wait(WAIT_S)
        agent.agent.shut_down()
        release.set()
        agent.join()
        assert [call.json["task_id"] for call in server.of("/agent/complete_task")] == [1]

    def test_second_signal_kills_and_reports(self, start: Start, server: FakeServer, sandbox: ScriptedSandbox) -> None:
        server.add_task()
        running = threading.Event()

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            running.set()
            return run_until_stopped(work, on_output, stop)

        sandbox.script = script
        agent = start()
        assert running.wait(WAIT_S)
        agent.agent.shut_down()
        agent.agent.shut_down()
        agent.join()
        assert [call.json["kind"] for call in server.of("/agent/fail_task")] == ["shutdown"]

    def test_second_signal_ends_even_when_the_server_is_away(
        self, start: Start, server: FakeServer, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gridx_worker.runner.SHUTDOWN_PATIENCE_S", 0.2)
        server.add_task()
        running = threading.Event()

        def script(work: Work, on_output: Callable[[bytes], None], stop: StopSwitch) -> Outcome:
            running.set()
            return run_until_stopped(work, on_output, stop)

        sandbox.script = script
        agent = start()
        assert running.wait(WAIT_S)
        server.routes["/agent/fail_task"] = lambda call: (503, {})
        agent.agent.shut_down()
        agent.agent.shut_down()
        agent.join()
        assert agent.error is None


class TestStanding:
    def test_says_what_it_takes_and_what_the_doctor_found(
        self, start: Start, server: FakeServer, make_config: Callable[..., Config]
    ) -> None:
        report.save(Findings([Check("disk", "full", "make room")], 1234.0), make_config().state_dir)
        start(accepts="recipes")
        said = server.wait_for("/agent/profile").json
        assert (said["accepts"], said["paused"], said["doctor"]["score"]) == ("recipes", None, 1234.0)
        assert server.of("/agent/register")[0].json["profile"]["accepts"] == "recipes"
        assert server.wait_for("/agent/request_task").json["accept"] == "recipes"

    def test_outside_its_hours_it_says_so_and_asks_for_nothing(self, start: Start, server: FakeServer) -> None:
        server.add_task()
        start(hours=WorkingHours("never", ((0, 0),)))
        assert "working hours are never" in server.wait_for("/agent/profile", lambda call: call.json["paused"] is not None).json["paused"]
        server.wait_for("/agent/heartbeat", count=3)
        assert server.of("/agent/request_task") == []

    def test_a_server_that_does_not_know_the_call_is_no_trouble(self, start: Start, server: FakeServer) -> None:
        del server.routes["/agent/profile"]
        server.add_task()
        start()
        server.wait_for("/agent/complete_task")
