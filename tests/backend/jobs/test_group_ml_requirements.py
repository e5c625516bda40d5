"""What the group-training platform that Grid-X unites required of itself, by number. Most is tested in depth elsewhere; here each is shown
once, through the API alone. docs/api.md maps them; test_group_ml_features.py has what else that platform did.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from gridx.core.db import Database
from gridx.jobs.options import JobRequest
from gridx.jobs.recipes import options as recipes
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import HARDWARE, World, weights
from tests.backend.jobs.test_outputs import leave
from tests.backend.jobs.test_recipes import flowers, post, upload
from tests.backend.jobs.training import train

GPU: dict[str, Any] = {"gpu_name": "RTX 4090", "gpu_count": 1, "vram_bytes": 24 * 2**30}


@pytest.fixture
def database(sqlite_database: Database) -> Database:
    """Nothing here depends on the kind of database."""
    return sqlite_database


@pytest.fixture(autouse=True)
def no_mirrors(world: World) -> None:
    world.api.app.state.catalogue._mirrors.update(mnist="off", fashion_mnist="off")  # pyright: ignore


def get(world: World, path: str, person: Person | None = None, **query: Any) -> Any:
    answer = world.api.get(path, params=query, headers=person.headers if person else {})
    assert answer.status_code == 200, answer.text
    return answer.json()


def table_job(world: World, buyer: Person, **fields: Any) -> int:
    """A prepared no-code job over a table of the buyer's own."""
    answer = post(world, buyer, **({"dataset_id": upload(world, buyer, flowers()), "model_type": "mlp", "target_column": "kind"} | fields))
    assert answer.status_code == 201, answer.text
    world.drain()
    return answer.json()["job_id"]


class TestRequirements:
    def test_1_registration_stores_all_hardware_and_answers_a_unique_token(self, world: World) -> None:
        first, second = world.agent("pc-1", **GPU), world.agent("pc-2")
        assert first.token != second.token
        seen = get(world, "/stats/agents/pc-1", first.owner)
        expected = {"hostname": "lab-pc-07", "cores": 8, "gpu_name": "RTX 4090", "vram_bytes": 24 * 2**30, "ram_bytes": 16 * 2**30,
                    "disk_free_bytes": 100 * 2**30, "os": "Linux 6.1", "python_version": "3.11.7", "torch_version": "2.13.0"}  # fmt: skip
        assert expected.items() <= (seen["hardware"] | {"hostname": seen["hostname"]}).items()
        assert (seen["id"], seen["status"]) == ("pc-1", "IDLE")

    def test_1_a_duplicate_id_is_refused_with_words_and_missing_fields_are_listed(self, world: World) -> None:
        world.agent("pc-1")
        other = world.person("other@example.com", "seller")
        key = world.api.post("/agent/keys", json={"label": "k"}, headers=other.headers).json()["key"]
        headers = {"Authorization": f"Bearer {key}"}
        taken = world.api.post("/agent/register", json={"agent_id": "pc-1", "hardware": HARDWARE}, headers=headers)
        assert (taken.status_code, taken.json()["code"]) == (409, "agent_id_taken")
        assert "pc-1" in taken.json()["detail"]
        lacking = world.api.post("/agent/register", json={"agent_id": "pc-3", "hardware": {"os": "Linux"}}, headers=headers)
        assert lacking.status_code == 422
        for field in ("hostname", "cores", "ram_bytes", "disk_free_bytes", "python_version"):
            assert f"hardware.{field}: field required" in lacking.json()["detail"]

    def test_2_heartbeats_show_who_is_there_and_silence_of_thirty_seconds_is_offline(self, world: World) -> None:
        agent = world.agent("pc-1")
        before = get(world, "/stats/agents/pc-1", agent.owner)["last_seen_at"]
        world.clock.advance(29)
        assert agent.call("heartbeat").status_code == 200
        assert get(world, "/stats/agents/pc-1", agent.owner)["last_seen_at"] > before
        world.clock.advance(31)
        assert [each["status"] for each in get(world, "/stats/agents", agent.owner)] == ["OFFLINE"]
        agent.call("heartbeat")
        assert get(world, "/stats/agents", agent.owner, status="IDLE")[0]["id"] == "pc-1"

    def test_3_a_job_names_dataset_model_hyperparameters_and_shards_gets_an_id_and_waits(self, world: World, buyer: Person) -> None:
        body = {"job_name": "t", "dataset_name": "synthetic", "model_type": "MLP", "shard_count": 2, "hyperparameters": {"epochs": 5}}
        answer = world.api.post("/jobs", json=body, headers=buyer.headers)
        assert answer.status_code == 201, answer.text
        view = world.view(buyer, answer.json()["job_id"])
        assert (view["status"], view["chunks"], view["recipe"], view["dataset_name"]) == ("PROCESSING", 2, "mlp", "synthetic")
        assert view["waiting_for"]

    def test_3_unsupported_names_are_refused_with_the_list_of_supported_ones(self, world: World, buyer: Person) -> None:
        answer = post(world, buyer, dataset_name="synthetic", model_type="transformer")
        assert "'transformer' is not one of mlp, cnn, logistic_regression, linear_regression" in answer.json()["detail"]
        answer = post(world, buyer, dataset_name="cifar10", model_type="mlp")
        assert "mnist, fashion_mnist, synthetic" in answer.json()["detail"]
        assert world.credits(buyer) == 100

    def test_3_more_shards_than_idle_nodes_is_refused_on_demand_and_else_waits_with_words(self, world: World, buyer: Person) -> None:
        world.agent("pc-1")
        fields = {"chunks": 2, "dataset_id": upload(world, buyer, flowers()), "model_type": "mlp", "target_column": "kind"}
        refused = post(world, buyer, **fields, require_idle=True)
        assert (refused.status_code, refused.json()["code"]) == (409, "not_enough_idle_agents")
        waiting = post(world, buyer, **fields).json()
        assert waiting["idle_agents"] == 1
        assert world.credits(buyer) == 98

    def test_3_mnist_works_without_network_and_says_what_it_is(self, world: World, buyer: Person) -> None:
        answer = post(world, buyer, dataset_name="MNIST", model_type="MLP").json()
        assert any("these are the 5,000 of its 60,000 digits" in words for words in answer["warnings"])
        assert any("5,000" in words for words in world.view(buyer, answer["job_id"])["warnings"])

    def test_3_fashion_mnist_without_network_is_refused_before_credits_move(self, world: World, buyer: Person) -> None:
        answer = post(world, buyer, dataset_name="Fashion-MNIST", model_type="MLP")
        assert (answer.status_code, answer.json()["code"]) == (503, "catalogue_unavailable")
        assert world.credits(buyer) == 100
        assert get(world, f"/jobs/list/{buyer.id}", buyer) == []

    def test_4_each_shard_is_a_task_of_its_own_on_a_distinct_node(self, world: World, buyer: Person) -> None:
        agents = [world.agent(f"pc-{number}") for number in range(4)]
        job_id = table_job(world, buyer, chunks=3)
        assert world.view(buyer, job_id)["started_at"] is None
        tasks = [agent.request() for agent in agents]
        assert sorted(task["chunk"] for task in tasks[:3]) == [0, 1, 2]
        assert tasks[3]["task_id"] is None, "nothing is left for the fourth"
        assert tasks[0]["hyperparameters"] == recipes.parse("mlp", {}).model_dump()
        assert tasks[0]["arguments"] == ["--model=mlp", "--target=kind"]
        view = world.view(buyer, job_id)
        assert (view["status"], view["started_at"] is not None) == ("RUNNING", True)
        assert get(world, "/stats/summary")["agents"]["busy"] == 3

    def test_4_memory_and_gpu_needs_are_met(self, world: World, buyer: Person) -> None:
        small, large = world.agent("small"), world.agent("large", ram_bytes=64 * 2**30, **GPU)
        table_job(world, buyer, chunks=1, needs={"ram_bytes": 32 * 2**30, "gpu": True, "vram_bytes": 8 * 2**30})
        assert small.request()["task_id"] is None
        assert large.request()["task_id"] is not None

    def test_5_the_node_trains_its_shard_reports_each_epoch_and_uploads(self, world: World, buyer: Person, tmp_path: Path) -> None:
        agent = world.agent("pc-1")
        job_id = table_job(world, buyer, chunks=1, hyperparameters={"epochs": 3})
        train(world, agent, tmp_path)
        world.drain()
        points = get(world, f"/jobs/{job_id}/metrics", buyer)["items"]
        assert [point["epoch"] for point in points] == [1, 2, 3]
        assert all(point["loss"] is not None and point["accuracy"] is not None for point in points)
        assert world.view(buyer, job_id)["status"] == "COMPLETED"

    def test_5_failures_are_reported_with_a_description(self, world: World, buyer: Person) -> None:
        agent = world.agent("pc-1")
        job_id = table_job(world, buyer, chunks=1)
        words = "ArithmeticError: the loss became nan in epoch 2, batch 7; try a smaller learning_rate"
        for _ in range(2):
            agent.request()
            agent.fail("script", words)
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "epoch 2, batch 7" in view["reason"]

    def test_5_a_node_can_be_told_to_run_configured_training_alone(self, world: World, buyer: Person) -> None:
        agent = world.agent("careful")
        assert agent.call("profile", accepts="recipes").status_code == 200
        world.job(buyer, chunks=1)
        assert agent.request()["task_id"] is None, "a stranger's script"
        job_id = table_job(world, buyer, chunks=1)
        assert agent.request()["job_id"] == job_id

    def test_6_results_are_means_with_a_breakdown_by_node_and_failures_stand_there(self, world: World, buyer: Person) -> None:
        one, two = world.agent("pc-1"), world.agent("pc-2")
        job_id = world.job(buyer, chunks=2)
        one.request()
        one.fail("script", "MemoryError: too large a batch")
        for agent, loss in ((two, 0.5), (one, 0.7)):
            agent.request()
            agent.finish(weights(), loss=loss, accuracy=1 - loss)
            world.drain()
        found = get(world, f"/jobs/{job_id}/results", buyer)
        assert found["status"] == "COMPLETED"
        assert found["mean_loss"] == pytest.approx(0.6)
        assert found["mean_accuracy"] == pytest.approx(0.4)
        assert {each["agent_id"]: each["mean_loss"] for each in found["per_agent"]} == {"pc-1": 0.7, "pc-2": 0.5}
        assert any("too large a batch" in words for words in found["errors"])
        assert get(world, f"/jobs/download/{job_id}", buyer)["final_result_url"]

    def test_7_checkpoints_logs_and_outputs_are_recorded_and_listed(self, world: World, buyer: Person) -> None:
        agent = world.agent("pc-1")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        leave(agent, "predictions.csv", b"1,2")
        agent.about("metrics", points=[{"seq": 0, "epoch": 4, "loss": 0.5}])
        agent.about("logs", offset=0, text="epoch 4\n")
        agent.finish(weights())
        world.drain()
        items = get(world, f"/jobs/{job_id}/artifacts", buyer)["items"]
        update = next(item for item in items if item["kind"] == "update")
        assert (update["subtask_id"], update["agent_id"], update["round"], update["epoch"]) == (agent.task["task_id"], "pc-1", 1, 4)
        assert update["size"] > 0
        assert len(update["sha256"]) == 64
        assert update["created_at"]
        assert world.api.get(update["url"]).status_code == 200
        assert "predictions.csv" in {item["filename"] for item in items if item["kind"] == "output"}
        assert get(world, f"/jobs/{job_id}/logs", buyer)["items"][0]["text"] == "epoch 4\n"

    def test_7_an_upload_that_did_not_arrive_fails_the_task_with_words(self, world: World, buyer: Person) -> None:
        agent = world.agent("pc-1")
        world.job(buyer, chunks=1)
        agent.request()
        answer = agent.complete(b"never uploaded")
        assert (answer.status_code, answer.json()["code"]) == (400, "nothing_uploaded")

    def test_8_every_worker_request_is_authenticated_and_tokens_can_be_revoked(self, world: World) -> None:
        agent = world.agent("pc-1")
        for token in ("", "wrong"):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            for path in ("heartbeat", "request_task", "metrics", "logs", "upload_url", "output_url", "complete_task", "fail_task"):
                answer = world.api.post(f"/agent/{path}", json={}, headers=headers)
                assert answer.status_code == 401, path
                assert answer.json()["detail"]
        [key] = get(world, "/agent/keys", agent.owner)["items"]
        world.api.delete(f"/agent/keys/{key['id']}", headers=agent.owner.headers)
        revoked = agent.call("heartbeat")
        assert revoked.status_code == 401
        assert revoked.json()["detail"]

    def test_9_the_dashboard_can_read_all_of_a_node_and_tell_its_states_apart(self, world: World, buyer: Person) -> None:
        idle, busy, offline = world.agent("idle", **GPU), world.agent("busy"), world.agent("offline")
        world.job(buyer, chunks=1)
        world.clock.advance(31)
        for agent in (idle, busy):
            agent.call("heartbeat")
        busy.request()
        seen = {each["id"]: each for each in get(world, "/stats/agents", idle.owner)}
        assert {name: each["status"] for name, each in seen.items()} == {"idle": "IDLE", "busy": "BUSY", "offline": "OFFLINE"}
        assert offline.owner
        assert {"gpu_name", "vram_bytes", "ram_bytes", "cores", "os"} <= set(seen["idle"]["hardware"])
        assert seen["idle"]["hostname"] == "lab-pc-07"
        assert seen["idle"]["last_seen_at"]

    def test_10_a_jobs_page_shows_each_tasks_node_epoch_loss_and_accuracy(self, world: World, buyer: Person) -> None:
        agent = world.agent("pc-1")
        job_id = table_job(world, buyer, chunks=2)
        agent.request()
        agent.about("metrics", points=[{"seq": 0, "epoch": 2, "loss": 0.25, "accuracy": 0.75}])
        view = world.view(buyer, job_id)
        running = next(task for task in view["subtasks"] if task["status"] == "RUNNING")
        assert (running["agent_id"], running["epoch"], running["loss"], running["accuracy"]) == ("pc-1", 2, 0.25, 0.75)
        [row] = get(world, f"/jobs/list/{buyer.id}", buyer)
        assert {"id", "status", "recipe", "dataset_name", "chunks", "created_at", "finished_at"} <= set(row)

    def test_11_what_happens_is_logged_with_ids_and_counts_can_be_read(self, world: World, buyer: Person) -> None:
        with capture_logs() as lines:
            agent = world.agent("pc-1")
            job_id = world.job(buyer, chunks=1)
            agent.request()
            agent.finish(weights())
            world.drain()
        said = {line["event"] for line in lines}
        assert {"registered", "submitted", "assigned", "job completed"} <= said
        assert any(line["event"] == "assigned" and line["job"] == job_id and line["agent"] == "pc-1" for line in lines)
        counts = get(world, "/stats/summary")
        assert counts["agents"] == {"total": 1, "online": 1, "idle": 1, "busy": 0, "offline": 0}
        assert counts["jobs"] == {"total": 1, "queued": 0, "running": 0, "completed": 1, "failed": 0}

    def test_11_log_lines_carry_the_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        from gridx.core.logs import configure_logs

        before = structlog.get_config()
        try:
            configure_logs("INFO")
            structlog.get_logger().info("registered", agent="pc-1")
        finally:
            structlog.configure(**before)
            logging.getLogger().handlers.clear()
        out = capsys.readouterr()
        line = json.loads((out.out + out.err).strip().splitlines()[-1])
        assert line["agent"] == "pc-1"
        assert "T" in next(str(value) for name, value in line.items() if name in ("timestamp", "time", "at"))

    def test_12_configurations_are_checked_in_one_place_and_every_wrong_field_is_listed(self, world: World, buyer: Person) -> None:
        hyper = {"learning_rate": -1, "epochs": "ten", "batch_size": 0, "hidden_layers": "wide", "activation": "step", "momentum": 1}
        answer = post(world, buyer, chunks=0, rounds="many", dataset_name="synthetic", model_type="mlp", hyperparameters=hyper)
        detail = answer.json()["detail"]
        for name, words in {"learning_rate": "greater than 0", "epochs": "valid integer", "batch_size": "greater than or equal to 1",
                            "hidden_layers": "valid list", "activation": "'relu'", "momentum": "not permitted"}.items():  # fmt: skip
            assert f"hyperparameters.{name}: " in detail
            assert words in detail
        assert "chunks: " in detail
        assert "rounds: " in detail

    def test_12_serialise_then_parse_gives_an_equal_configuration(self) -> None:
        body = {"title": "t", "dataset_name": "synthetic", "model_type": "MLP", "shard_count": 2, "hyperparameters": {"hidden_layers": [7]}}
        parsed = JobRequest.model_validate(body)
        assert JobRequest.model_validate_json(parsed.model_dump_json()) == parsed

    def test_its_defaults_are_ours(self) -> None:
        expected = {"learning_rate": 0.001, "epochs": 10, "batch_size": 32, "hidden_layers": [128, 64], "activation": "relu"}
        assert recipes.parse("mlp", {}).model_dump() == expected


def test_every_requirement_has_a_row_in_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/api.md").read_text()
    for number in range(1, 13):
        assert f"test_{number}_" in text
