"""Who gets which work, and what keeps or ends a lease."""

import hashlib
import json
from typing import Any

import pytest
from httpx import Response

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World, pth, weights


class TestClaim:
    def test_without_work_the_agent_is_told_when_to_ask_again(self, world: World) -> None:
        task = world.agent("a").request()
        assert task["task_id"] is None
        assert task["poll_after_s"] == world.settings.poll_s

    def test_a_lost_reply_gets_the_same_attempt_again(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer)
        first = agent.request()
        again = agent.request()
        assert (again["task_id"], again["lease_token"], again["attempt"]) == (first["task_id"], first["lease_token"], 1)

    def test_buyers_share_the_agents_fairly(self, world: World, buyer: Person) -> None:
        other = world.person("bob@buyers.example.com")
        first, second = world.job(buyer, chunks=5), world.job(other, chunks=5)
        got = [world.agent(f"a{index}").request()["job_id"] for index in range(6)]
        assert got == [first, second, first, second, first, second]

    def test_needs_are_met(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=1, needs='{"gpu": true, "ram_bytes": 1000}')
        assert world.agent("plain").request()["task_id"] is None
        assert "does" in world.view(buyer, job_id)["waiting_for"]
        assert "GPU" in world.view(buyer, job_id)["waiting_for"]
        assert world.agent("fast", gpu_count=1, vram_bytes=8 * 2**30, gpu_name="T4").request()["job_id"] == job_id

    def test_a_warm_job_is_preferred_between_equals(self, world: World, buyer: Person) -> None:
        world.job(buyer, chunks=2)
        second = world.job(buyer, chunks=2)
        agent = world.agent("a")
        assert agent.call("request_task", warm_job_ids=[second]).json()["job_id"] == second

    def test_a_seller_that_failed_a_chunk_gets_it_again_only_when_alone(self, world: World, buyer: Person) -> None:
        first, second = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=1)
        first.request()
        first.fail()
        assert first.request()["task_id"] is None
        world.clock.advance(31)  # the other one falls silent
        first.about("heartbeat")
        assert second is not None
        assert first.request()["task_id"] is not None

    def test_a_seller_whose_machines_do_not_suit_is_not_waited_for(self, world: World, buyer: Person) -> None:
        large, _small = world.agent("large", ram_bytes=64 * 2**30), world.agent("small", ram_bytes=2**30)
        job_id = world.job(buyer, chunks=1, needs='{"ram_bytes": 34359738368}')
        for _ in range(2):
            assert large.request()["task_id"] is not None
            large.fail()
        assert world.view(buyer, job_id)["status"] == "FAILED"

    def test_a_seller_who_is_online_and_never_asks_holds_nothing_up(self, world: World, buyer: Person) -> None:
        first, idler = world.agent("a"), world.agent("b")
        world.job(buyer, chunks=1)
        first.request()
        first.fail()
        for _ in range(8):
            world.clock.advance(15)
            idler.call("heartbeat")
            first.call("heartbeat")
        assert first.request()["task_id"] is not None

    @pytest.mark.parametrize("kind", ["shutdown", "silence"])
    def test_a_seller_who_takes_work_and_drops_it_cannot_use_up_its_attempts(self, world: World, buyer: Person, kind: str) -> None:
        dropper, honest = world.agent("a"), world.agent("b")
        job_id = world.job(buyer, chunks=1)
        for _ in range(2):
            assert dropper.request()["task_id"] is not None
            if kind == "shutdown":
                dropper.fail("shutdown", "the machine is being turned off")
            else:
                for _ in range(7):  # in steps, or it would pass for the server's own downtime
                    world.clock.advance(10)
                    honest.call("heartbeat")
                    world.expire()
                dropper.call("heartbeat")
        assert dropper.request()["task_id"] is None
        assert honest.request()["task_id"] is not None
        honest.finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"


class TestWaitingFor:
    def test_says_that_no_agent_is_online(self, world: World, buyer: Person) -> None:
        assert "none is online" in world.view(buyer, world.job(buyer))["waiting_for"]

    def test_counts_what_is_missing(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer)
        agent.request()
        words = world.view(buyer, job_id)["waiting_for"]
        assert "5 of 5 updates" in words
        assert "1 training" in words
        assert "busy" in words


class TestHeartbeat:
    def test_extends_the_lease_and_shows_the_phase(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        for _ in range(5):
            world.clock.advance(50)
            assert agent.about("heartbeat", phase="TRAINING", progress=0.4, epoch=2).json()["cancel"] is False
            world.expire()
        [subtask] = world.view(buyer, job_id)["subtasks"]
        assert (subtask["status"], subtask["phase"], subtask["progress"], subtask["epoch"]) == ("RUNNING", "TRAINING", 0.4, 2)

    def test_tells_of_a_lost_lease(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        world.expire()
        world.clock.advance(25)
        world.expire()
        world.clock.advance(25)
        world.expire()
        world.clock.advance(25)
        assert world.expire() == 1
        answer = agent.about("heartbeat").json()
        assert answer["cancel"] is True
        assert "not heard of" in answer["cancel_reason"]

    def test_presence_is_idle_busy_or_offline(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")

        def status() -> str:
            return world.api.get("/stats/agents/a", headers=buyer.headers).json()["status"]

        assert status() == "IDLE"
        world.job(buyer, chunks=1)
        agent.request()
        assert status() == "BUSY"
        world.clock.advance(31)
        assert status() == "OFFLINE"
        agent.about("heartbeat")
        assert status() == "BUSY"
        agent.finish(weights())
        assert status() == "IDLE"


def silence(world: World, seconds: float) -> None:
    """Time passes while background work goes on."""
    world.expire()
    for _ in range(int(seconds // 10)):
        world.clock.advance(10)
        world.expire()


class TestLeases:
    def test_a_silent_agent_loses_its_work_to_another(self, world: World, buyer: Person) -> None:
        silent, other = world.agent("a"), world.agent("b")
        job_id = world.job(buyer, chunks=1)
        silent.request()
        silence(world, 80)
        other.request()
        assert other.task["task_id"] == silent.task["task_id"]
        data = pth(weights(9.0))
        assert silent.about("upload_url", size=len(data)).status_code == 409
        stale = silent.complete(data)
        assert (stale.status_code, stale.json()["code"]) == (409, "lease_lost")
        other.finish(weights(1.0))
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert (world.credits(silent.owner), world.credits(other.owner)) == (100, 101)

    def test_a_stale_upload_is_never_used(self, world: World, buyer: Person) -> None:
        silent, other = world.agent("a"), world.agent("b")
        job_id = world.job(buyer, chunks=1)
        silent.request()
        data = pth(weights(9.0))
        link = silent.about("upload_url", size=len(data)).json()
        silence(world, 80)
        assert world.api.put(link["url"], content=data, headers=link["headers"]).status_code == 204
        other.request()
        other.finish(weights(1.0))
        world.drain()
        assert world.model(buyer, job_id) != b""
        view = world.view(buyer, job_id)
        assert [(attempt["agent_id"], attempt["status"]) for attempt in view["subtasks"][0]["attempts"]] == [
            ("a", "LOST"),
            ("b", "ACCEPTED"),
        ]

    def test_the_deadline_is_never_extended(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1, time_limit_s=60)
        agent.request()
        for _ in range(10):
            world.clock.advance(10)
            agent.about("heartbeat")
            world.expire()
        [attempt] = world.view(buyer, job_id)["subtasks"][0]["attempts"]
        assert attempt["status"] == "FAILED"
        assert "time limit" in attempt["reason"]

    def test_after_its_own_downtime_the_server_grants_a_grace(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        world.expire()
        world.clock.advance(600)  # nothing ran, nobody could be heard
        assert world.expire() == 0
        assert world.view(buyer, job_id)["subtasks"][0]["status"] == "RUNNING"
        agent.finish(weights())
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"


class TestRevocation:
    def test_a_revoked_key_ends_tokens_and_leases_at_once(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        [key] = world.api.get("/agent/keys", headers=agent.owner.headers).json()["items"]
        assert world.api.delete(f"/agent/keys/{key['id']}", headers=agent.owner.headers).status_code == 200
        answer = agent.about("heartbeat")
        assert answer.status_code == 401
        assert "enrolment key" in answer.json()["detail"]
        assert world.view(buyer, job_id)["subtasks"][0]["status"] == "PENDING"

    def test_a_removed_machine_loses_its_work(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        assert world.api.delete("/agent/a", headers=agent.owner.headers).status_code == 200
        assert world.view(buyer, job_id)["subtasks"][0]["status"] == "PENDING"
        assert world.api.get("/stats/agents/a", headers=buyer.headers).status_code == 404

    def test_somebody_elses_key_and_machine_look_like_none(self, world: World) -> None:
        world.agent("a")
        stranger = world.person("eve@example.com", "seller")
        assert world.api.delete("/agent/keys/1", headers=stranger.headers).status_code == 404
        assert world.api.delete("/agent/a", headers=stranger.headers).status_code == 404

    def test_a_disabled_account_takes_its_machines_along(self, world: World) -> None:
        from gridx.accounts import service as accounts

        agent = world.agent("a")
        with world.database.write() as session:
            accounts.set_disabled(session, email="a@sellers.example.com", is_disabled=True)
        answer = agent.call("request_task")
        assert answer.status_code == 401
        assert "disabled" in answer.json()["detail"]


class TestUploadThroughTheServer:
    def test_takes_the_raw_body_for_the_attempt_that_holds_the_token(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        data = pth(weights())
        headers = {"Authorization": f"Bearer {agent.token}", "Gridx-Lease-Token": agent.task["lease_token"]}
        url = f"/agent/upload_result?task_id={agent.task['task_id']}"
        assert world.api.post(url, content=data, headers=headers | {"Gridx-Lease-Token": "0" * 32}).status_code == 409
        assert world.api.post(url, content=data, headers=headers).status_code == 200
        agent.complete(data)
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"


class TestRegistration:
    def test_the_same_machine_returns_with_a_new_token(self, world: World) -> None:
        agent = world.agent("a")
        again = world.agent("a", agent.owner)
        assert again.token != agent.token
        assert agent.call("request_task").status_code == 401
        assert again.call("request_task").status_code == 200

    def test_another_sellers_name_is_taken(self, world: World) -> None:
        world.agent("a")
        stranger = world.person("eve@example.com", "seller")
        key = world.api.post("/agent/keys", json={"label": "x"}, headers=stranger.headers).json()["key"]
        from tests.backend.jobs.conftest import HARDWARE

        body = {"agent_id": "a", "hardware": HARDWARE}
        answer = world.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {key}"})
        assert (answer.status_code, answer.json()["code"]) == (409, "agent_id_taken")

    def test_missing_fields_are_listed(self, world: World) -> None:
        answer = world.api.post(
            "/agent/register", json={"agent_id": "a", "hardware": {"cores": 2}}, headers={"Authorization": "Bearer gxk_x"}
        )
        assert answer.status_code == 422
        for name in ("hostname", "os", "ram_bytes", "python_version", "isolation"):
            assert name in answer.json()["detail"]


class TestReports:
    def test_metrics_and_logs_sent_twice_are_stored_once(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        points = [{"seq": 0, "epoch": 1, "loss": 0.7, "accuracy": 0.5, "more": {"f1": 0.4}}]
        assert [agent.about("metrics", points=points).json()["stored"] for _ in range(2)] == [1, 0]
        assert [agent.about("logs", offset=0, text="epoch 1\n").json()["offset"] for _ in range(2)] == [8, 8]
        assert agent.about("logs", offset=4, text="h 1\nepoch 2\n").json()["offset"] == 16
        [log] = world.api.get(f"/jobs/{job_id}/logs", headers=buyer.headers).json()["items"]
        assert log["text"] == "epoch 1\nepoch 2\n"
        [subtask] = world.view(buyer, job_id)["subtasks"]
        assert (subtask["epoch"], subtask["loss"], subtask["accuracy"]) == (1, 0.7, 0.5)

    def test_numbers_and_names_that_json_cannot_hold_are_left_out(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        body = agent.task | {"points": [{"seq": 0, "loss": "NaN", "more": {"\ud800": 1, "f1": "Infinity"}}]}

        def send(path: str, body: dict[str, Any]) -> Response:
            # As a hostile agent writes it: infinity as a number too large, NaN as text, names that are half a character.
            data = json.dumps(body).replace('"HUGE"', "1e999")
            headers = {"Authorization": f"Bearer {agent.token}", "Content-Type": "application/json"}
            return world.api.post(f"/agent/{path}", content=data, headers=headers)

        assert send("metrics", body).json() == {"stored": 1}
        data = pth(weights())
        agent.upload(data)
        about = {"task_id": agent.task["task_id"], "lease_token": agent.task["lease_token"], "sha256": hashlib.sha256(data).hexdigest()}
        metrics = {"loss": "HUGE", "accuracy": "NaN", "\udfff": 1, "f1": 0.5}
        assert send("complete_task", about | {"size": len(data), "train_s": "HUGE", "metrics": metrics}).status_code == 200
        world.drain()
        assert [point["more"] for point in world.api.get(f"/jobs/{job_id}/metrics", headers=buyer.headers).json()["items"]] == [{"?": 1.0}]
        [attempt] = world.view(buyer, job_id)["subtasks"][0]["attempts"]
        assert (attempt["status"], attempt["loss"], attempt["accuracy"], attempt["train_s"]) == ("ACCEPTED", None, None, None)
        assert world.api.get(f"/jobs/{job_id}/results", headers=buyer.headers).json()["mean_loss"] is None

    def test_a_flood_of_output_keeps_head_and_tail(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        offset = 0
        for number in range(8):
            text = f"{number}" * 60_000
            offset = agent.about("logs", offset=offset, text=text).json()["offset"]
        [log] = world.api.get(f"/jobs/{job_id}/logs", headers=buyer.headers).json()["items"]
        assert log["text"].startswith("000")
        assert log["text"].endswith("777")
        assert "bytes cut" in log["text"]
        assert len(log["text"]) < 70_000
        assert log["total_bytes"] == 480_000

    def test_a_stale_token_stores_nothing(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        agent.task["lease_token"] = "0" * 32
        assert agent.about("metrics", points=[]).status_code == 409
        assert agent.about("logs", offset=0, text="x").status_code == 409
        assert agent.fail().status_code == 409
