"""Held-out rows, the scores of each round's model on them, and what follows: the best round, early stopping, starting from a model."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import CSV, SCRIPT, FakeAgent, World, pth, weights

EVALUATES = (
    SCRIPT.replace("torch.save(", "if __name__ == '__main__':\n    torch.save(")
    + "\ndef evaluate(model_path, csv_path):\n    return {'accuracy': 1.0}\n"
)


@pytest.fixture
def agents(world: World) -> list[FakeAgent]:
    return [world.agent("a"), world.agent("b")]


def train_round(world: World, agents: list[FakeAgent], value: float = 1.0) -> None:
    for agent in agents:
        while agent.request()["task_id"] is not None and agent.task["kind"] == "train":
            agent.finish(weights(value), loss=0.5, accuracy=0.8)
    world.drain()


def evaluations(agents: list[FakeAgent]) -> Iterator[FakeAgent]:
    for agent in agents:
        if agent.request()["task_id"] is not None:
            assert agent.task["kind"] == "evaluate"
            yield agent


def say(agent: FakeAgent, **numbers: float) -> dict[str, Any]:
    """Complete an evaluation: nothing is uploaded."""
    answer = agent.complete(b"{}", **numbers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))[1:]


class TestHeldOutRows:
    @pytest.mark.parametrize("partitioner", ["iid", "contiguous"])
    def test_no_row_is_trained_on_and_scored(self, world: World, buyer: Person, agents: list[FakeAgent], partitioner: str) -> None:
        world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2, partitioner=partitioner, seed=3)
        seen: list[list[str]] = []
        for agent in agents:
            seen += rows_of(world.api.get(agent.request()["chunk_data_url"]).content)
            agent.finish(weights(), loss=1.0)
        world.drain()
        held = [rows_of(world.api.get(agent.task["chunk_data_url"]).content) for agent in evaluations(agents)]
        assert held[0] == held[1]
        assert len(held[0]) == 10
        assert sorted(seen + held[0]) == sorted(rows_of(CSV))

    def test_the_price_counts_evaluations(self, world: World, buyer: Person) -> None:
        answer = world.submit(buyer, script=EVALUATES, chunks=3, rounds=4, held_out=0.1)
        assert answer.json()["price"] == 4 * (3 + 2)
        assert world.submit(buyer, script=EVALUATES, chunks=3, rounds=4, held_out=0.1, evaluations=1).json()["price"] == 4 * (3 + 1)

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"held_out": 0.6}, "held_out"),
            ({"held_out": 0.98}, "held_out"),
            ({"early_stopping": '{"patience": 2}'}, "early_stopping: it looks at held-out rows"),
            ({"held_out": 0.1, "early_stopping": '{"patience": 0}'}, "early_stopping.patience"),
            ({"held_out": 0.5, "chunks": 30}, "25 of them held out"),
            ({"initial_round": 2}, "initial_job_id"),
            ({"fraction": 0}, "fraction"),
            ({"fraction": 0.4, "min_updates": 3}, "min_updates: 3 is more than the 2 chunks of a round"),
        ],
    )
    def test_a_wrong_field_is_named_and_costs_nothing(self, world: World, buyer: Person, fields: dict[str, Any], words: str) -> None:
        answer = world.submit(buyer, script=EVALUATES, **fields)
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
        assert world.credits(buyer) == 100

    @pytest.mark.parametrize(
        "script", [SCRIPT, SCRIPT + "def evaluate(path): pass\n", SCRIPT + "class A:\n def evaluate(self, a, b): pass\n"]
    )
    def test_a_script_that_cannot_evaluate_is_refused(self, world: World, buyer: Person, script: str) -> None:
        answer = world.submit(buyer, script=script, held_out=0.1)
        assert answer.status_code == 422
        assert "evaluate(model_path, csv_path)" in answer.json()["detail"]
        dataset = world.api.post("/datasets", content=CSV, headers=buyer.headers).json()["id"]
        body = {"title": "t", "script": script, "dataset_id": dataset, "held_out": 0.1}
        assert world.api.post("/jobs", json=body, headers=buyer.headers).json()["detail"] == answer.json()["detail"]
        assert world.credits(buyer) == 100


class TestEvaluations:
    def test_two_sellers_score_each_round_and_are_paid(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, rounds=2, held_out=0.2)
        for number in (1, 2):
            train_round(world, agents, float(number))
            view = world.view(buyer, job_id)
            assert (view["status"], view["current_round"]) == ("RUNNING", number)
            assert "waiting for 2 of 2 evaluations" in view["waiting_for"]
            for agent in evaluations(agents):
                model = world.api.get(agent.task["global_model_url"]).content
                assert model == world.api.get(_artifact(world, buyer, job_id, number)["url"]).content
                assert say(agent, accuracy=0.5 + number / 10, loss=1 / number)["status"] == "COMPLETED"
        view = world.view(buyer, job_id)
        assert view["status"] == "COMPLETED"
        found = [row["evaluation"] for row in view["round_list"]]
        assert [row["metrics"]["accuracy"] for row in found] == [pytest.approx(0.6), pytest.approx(0.7)]
        assert found[0] | {"metrics": None} == {"metrics": None, "rows": 10, "agents": ["a", "b"], "differ": []}
        assert view["round_list"][0]["mean_accuracy"] == pytest.approx(0.8)  # the chunks' own series stays apart
        assert (view["best_round"], view["completed_subtasks"], view["total_subtasks"]) == (2, 4, 4)
        assert sum(world.credits(agent.owner) - 100 for agent in agents) == 2 * (2 + 2)
        assert world.credits(buyer) == 92

    def test_one_seller_is_enough_and_the_rest_comes_back(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2)
        train_round(world, [agent])
        for each in evaluations([agent]):
            say(each, accuracy=0.9)
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert (world.credits(buyer), world.credits(agent.owner), world.wallet(buyer)["held"]) == (97, 103, 0)

    def test_a_second_evaluation_is_another_sellers(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        second = world.agent("a2", agents[0].owner)
        world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2)
        train_round(world, agents)
        assert agents[0].request()["kind"] == "evaluate"
        assert second.request()["task_id"] is None
        assert agents[1].request()["kind"] == "evaluate"

    def test_a_second_seller_who_never_comes_is_not_waited_for(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2)
        train_round(world, agents)
        agents[0].request()
        say(agents[0], accuracy=0.9)
        world.look_after_rounds()
        assert world.view(buyer, job_id)["status"] == "RUNNING"
        world.clock.advance(61)
        agents[1].call("heartbeat")
        world.look_after_rounds()
        view = world.view(buyer, job_id)
        assert (view["status"], view["round_list"][0]["evaluation"]["agents"]) == ("COMPLETED", ["a"])
        assert world.wallet(buyer)["held"] == 0

    def test_numbers_that_differ_are_said(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2)
        train_round(world, agents)
        for agent, accuracy in zip(evaluations(agents), (0.9, 0.5), strict=True):
            say(agent, accuracy=accuracy, loss=0.25)
        view = world.view(buyer, job_id)
        assert view["round_list"][0]["evaluation"]["differ"] == ["accuracy"]
        assert view["round_list"][0]["evaluation"]["metrics"] == {"accuracy": pytest.approx(0.7), "loss": 0.25}
        assert any("they differ in accuracy" in event["text"] for event in view["events"])

    def test_the_same_answer_twice_pays_once(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2)
        train_round(world, agents)
        agents[0].request()
        assert [say(agents[0], accuracy=0.9)["status"] for _ in range(2)] == ["COMPLETED", "COMPLETED"]
        assert world.credits(agents[0].owner) == 102 + 1

    def test_no_numbers_are_refused_and_fail_the_job_when_two_say_so(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2, evaluations=1)
        train_round(world, agents)
        for agent in agents:
            assert agent.request()["kind"] == "evaluate"
            assert say(agent)["status"] == "REFUSED"
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "evaluate() returned no finite number" in view["reason"]

    def test_an_evaluation_that_never_succeeds_does_not_end_the_job(self, world: World, buyer: Person) -> None:
        agents = [world.agent(name) for name in "abc"]
        job_id = world.job(buyer, script=EVALUATES, chunks=2, held_out=0.2, evaluations=1)
        train_round(world, agents)
        for agent, kind in zip(agents, ("memory", "timeout", "output"), strict=True):
            assert agent.request()["kind"] == "evaluate"
            agent.fail(kind, "trouble")
        view = world.view(buyer, job_id)
        assert (view["status"], view["round_list"][0]["evaluation"]) == ("COMPLETED", None)
        assert world.wallet(buyer)["held"] == 0


class TestEarlyStopping:
    def test_a_job_ends_when_nothing_gets_better(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, rounds=9, held_out=0.2, early_stopping='{"patience": 2, "min_delta": 0.01}')
        for accuracy in (0.6, 0.8, 0.805, 0.7):
            train_round(world, agents, accuracy)
            for agent in evaluations(agents):
                say(agent, accuracy=accuracy)
        view = world.view(buyer, job_id)
        assert (view["status"], view["current_round"], view["best_round"]) == ("COMPLETED", 4, 3)
        assert any("no better for 2 rounds" in event["text"] for event in view["events"])
        assert world.credits(buyer) == 100 - 4 * 4
        kinds = {item["round"]: item["kind"] for item in world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]}
        assert kinds[3] == "best_model"
        updates = [
            item for item in world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"] if item["kind"] == "update"
        ]
        assert {item["round"] for item in updates} == {4}  # the last round's are kept though it was not the last that was ordered

    def test_a_loss_is_better_when_lower(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        job_id = world.job(buyer, script=EVALUATES, chunks=2, rounds=5, held_out=0.2, early_stopping='{"patience": 1, "monitor": "loss"}')
        for loss in (0.9, 0.5, 0.6):
            train_round(world, agents)
            for agent in evaluations(agents):
                say(agent, accuracy=loss, loss=loss)
        view = world.view(buyer, job_id)
        assert (view["status"], view["current_round"], view["best_round"]) == ("COMPLETED", 3, 2)


class TestInitialModel:
    def test_round_one_starts_from_an_uploaded_model(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        answer = world.api.post(
            "/jobs/upload",
            data={"title": "goes on", "chunks": 2},
            files={"file_code": ("t.py", SCRIPT), "file_data": ("d.csv", CSV), "file_model": ("m.pth", pth(weights(5.0)))},
            headers=buyer.headers,
        )
        assert answer.status_code == 201, answer.text
        world.drain()
        for agent in agents:
            assert agent.request()["global_model_url"] is not None
            agent.finish(weights(7.0))
        world.drain()
        view = world.view(buyer, answer.json()["job_id"])
        assert view["status"] == "COMPLETED"
        assert view["round_list"][0]["step_norm"] == pytest.approx(6.0)  # nine weights, each moved by 2

    def test_updates_must_fit_it(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        answer = world.api.post(
            "/jobs/upload",
            data={"title": "goes on", "chunks": 2},
            files={
                "file_code": ("t.py", SCRIPT),
                "file_data": ("d.csv", CSV),
                "file_model": ("m.pth", pth({"other": weights()["fc.bias"]})),
            },
            headers=buyer.headers,
        )
        world.drain()
        agents[0].request()
        agents[0].finish(weights())
        world.drain()
        attempt = world.view(buyer, answer.json()["job_id"])["subtasks"][0]["attempts"][0]
        assert attempt["status"] == "REFUSED"

    def test_a_file_that_is_no_model_fails_the_job_and_gives_the_credits_back(self, world: World, buyer: Person) -> None:
        answer = world.api.post(
            "/jobs/upload",
            data={"title": "goes on", "chunks": 2},
            files={"file_code": ("t.py", SCRIPT), "file_data": ("d.csv", CSV), "file_model": ("m.pth", b"no model at all")},
            headers=buyer.headers,
        )
        world.drain()
        view = world.view(buyer, answer.json()["job_id"])
        assert view["status"] == "FAILED"
        assert view["reason"].startswith("the initial model cannot be used")
        assert world.credits(buyer) == 100

    def test_a_job_goes_on_from_the_round_of_another(self, world: World, buyer: Person, agents: list[FakeAgent]) -> None:
        first = world.job(buyer, chunks=2, rounds=2)
        for value in (1.0, 2.0):
            train_round(world, agents, value)
        second = world.job(buyer, chunks=2, initial_job_id=first, initial_round=1)
        model = world.api.get(agents[0].request()["global_model_url"]).content
        assert model == world.api.get(_artifact(world, buyer, first, 1)["url"]).content
        view = world.view(buyer, second)
        assert view["round_list"][0]["round"] == 1  # the model given is no round of its own
        assert (view["has_initial_model"], world.view(buyer, first)["has_initial_model"]) == (True, False)
        world.api.post(f"/jobs/{second}/cancel", headers=buyer.headers)
        again = world.job(buyer, chunks=2, initial_job_id=second, initial_round=0)  # from what that one itself started from
        assert world.api.get(agents[0].request()["global_model_url"]).content == model
        assert world.view(buyer, again)["has_initial_model"]
        assert world.submit(buyer, initial_job_id=first, initial_round=0).status_code == 404
        stranger = world.person("eve@buyers.example.com")
        assert world.submit(stranger, initial_job_id=first).status_code == 404
        assert world.submit(buyer, initial_job_id=first, initial_round=3).status_code == 404


def _artifact(world: World, buyer: Person, job_id: int, number: int) -> dict[str, Any]:
    items = world.api.get(f"/jobs/{job_id}/artifacts", headers=buyer.headers).json()["items"]
    return next(item for item in items if item["kind"] in ("global_model", "best_model") and item["round"] == number)
