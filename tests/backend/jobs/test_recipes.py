"""No-code jobs: from their words to a trained model, by the ordinary way."""

import csv
import io
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gridx.core.db import Database
from gridx.jobs.recipes import options as recipes
from gridx.jobs.recipes.orders import recipe_script
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World
from tests.backend.jobs.training import evaluate, in_sandbox, train

DEFAULTS = {"learning_rate": 0.001, "epochs": 10, "batch_size": 32, "hidden_layers": [128, 64], "activation": "relu"}


@pytest.fixture(autouse=True)
def no_mirrors(world: World) -> None:
    world.api.app.state.catalogue._mirrors.update(mnist="off", fashion_mnist="off")  # pyright: ignore


def post(world: World, buyer: Person, **fields: Any) -> Any:
    return world.api.post("/jobs", json={"title": "no code", "chunks": 2, **fields}, headers=buyer.headers)


def upload(world: World, buyer: Person, rows: list[list[Any]], delimiter: str = ",") -> int:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return world.api.post("/datasets", content=text.getvalue().encode(), headers=buyer.headers).json()["id"]


def flowers(rows: int = 150) -> list[list[Any]]:
    """Three kinds, told apart by two numbers and a colour; some values are missing."""
    random = np.random.default_rng(1)
    table: list[list[Any]] = [["length", "width", "colour", "kind"]]
    for number in range(rows):
        kind = number % 3
        length, width = random.normal(1000 * kind, 200), random.normal(0.01 * kind, 0.004)
        table.append(["" if number == 7 else round(length, 3), round(width, 6), ["red", "blue", ""][kind], ["a", "b", "c"][kind]])
    return table


def run(world: World, buyer: Person, folder: Path, **fields: Any) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """Submit and train to the end. Returns the job's id, the last reports of each chunk and round, and the last task."""
    answer = post(world, buyer, **fields)
    assert answer.status_code == 201, answer.text
    world.drain()
    agent = world.agent(f"m{answer.json()['job_id']}")
    reports: list[dict[str, Any]] = []
    for _ in range(fields.get("rounds", 1)):
        for _ in range(2):
            reports.append(train(world, agent, folder))
        world.drain()
    view = world.view(buyer, answer.json()["job_id"])
    assert view["status"] == "COMPLETED", view["reason"]
    return view["id"], reports, agent.task


class TestTraining:
    @pytest.fixture
    def database(self, sqlite_database: Database) -> Database:
        """Nothing here depends on the kind of database."""
        return sqlite_database

    def test_an_mlp_learns_a_table_with_texts_and_holes(self, world: World, buyer: Person, tmp_path: Path) -> None:
        dataset_id = upload(world, buyer, flowers(), ";")
        hyper = {"epochs": 12, "learning_rate": 0.02, "hidden_layers": [16]}
        job_id, reports, task = run(
            world, buyer, tmp_path, rounds=2, dataset_id=dataset_id, model_type="MLP", target_column="kind", hyperparameters=hyper
        )
        assert reports[-1]["accuracy"] > 0.95
        assert reports[-1]["epoch"] == 12
        view = world.view(buyer, job_id)
        assert view["recipe"] == "mlp"
        assert view["hyperparameters"] == DEFAULTS | hyper
        assert view["arguments"] == ["--model=mlp", "--target=kind", "--delimiter=;"]
        table = "\n".join(";".join(map(str, row)) for row in flowers(60)) + "\n"
        found = evaluate(world, task, tmp_path, world.model(buyer, job_id), table.encode())
        assert found["accuracy"] > 0.95

    def test_logistic_regression_learns_it_too(self, world: World, buyer: Person, tmp_path: Path) -> None:
        fields: dict[str, Any] = {
            "model_type": "logistic_regression",
            "target_column": "kind",
            "hyperparameters": {"epochs": 20, "learning_rate": 0.05},
        }
        _, reports, _ = run(world, buyer, tmp_path, dataset_id=upload(world, buyer, flowers()), **fields)
        assert min(report["accuracy"] for report in reports) > 0.95

    def test_linear_regression_finds_the_line(self, world: World, buyer: Person, tmp_path: Path) -> None:
        random = np.random.default_rng(2)
        points = random.normal(size=(200, 2)) * [10, 0.1]
        rows: list[list[Any]] = [["x", "y", "price"], *([x, y, 500 + 3 * x - 100 * y] for x, y in points.tolist())]
        fields: dict[str, Any] = {
            "model_type": "linear_regression",
            "target_column": "price",
            "hyperparameters": {"epochs": 30, "learning_rate": 0.05},
        }
        job_id, reports, task = run(world, buyer, tmp_path, dataset_id=upload(world, buyer, rows), **fields)
        deviation = float(np.std([row[2] for row in rows[1:]]))
        assert reports[-1]["rmse"] < 0.1 * deviation
        held_out = "x,y,price\n1,0.1,493\n-5,0.2,465\n"
        assert evaluate(world, task, tmp_path, world.model(buyer, job_id), held_out.encode())["rmse"] < 0.1 * deviation

    def test_a_cnn_learns_small_pictures(self, world: World, buyer: Person, tmp_path: Path) -> None:
        rows: list[list[Any]] = [[*(f"p{n}" for n in range(36)), "shape"]]
        for number in range(60):
            picture = np.zeros((6, 6), dtype=int)
            picture[(number % 5, slice(None)) if number % 2 else (slice(None), number % 6)] = 200 + number % 50
            rows.append([*picture.reshape(-1).tolist(), number % 2])
        hyper = {"epochs": 12, "learning_rate": 0.005, "hidden_layers": [16]}
        fields: dict[str, Any] = {"model_type": "cnn", "target_column": "shape", "hyperparameters": hyper}
        _, reports, _ = run(world, buyer, tmp_path, dataset_id=upload(world, buyer, rows), **fields)
        assert reports[-1]["accuracy"] > 0.9

    def test_a_nan_loss_fails_naming_epoch_and_batch(self, world: World, buyer: Person, tmp_path: Path) -> None:
        fields = {"dataset_id": upload(world, buyer, flowers()), "model_type": "logistic_regression", "target_column": "kind"}
        post(world, buyer, chunks=1, rounds=2, **fields)
        world.drain()
        agent = world.agent("a")
        agent.request()
        agent.finish({"weight": torch.full((3, 4), 3e38), "bias": torch.zeros(3)})  # it has diverged in round 1
        world.drain()
        with pytest.raises(ArithmeticError, match=r"the loss became (nan|inf) in epoch 1, batch 1; try a smaller learning_rate"):
            train(world, agent, tmp_path)

    def test_held_out_rows_score_it(self, world: World, buyer: Person, tmp_path: Path) -> None:
        fields = {"dataset_id": upload(world, buyer, flowers()), "model_type": "logistic_regression", "target_column": "kind"}
        hyper = {"epochs": 20, "learning_rate": 0.05}
        answer = post(world, buyer, **fields, held_out=0.2, evaluations=1, hyperparameters=hyper)
        assert answer.status_code == 201, answer.text
        world.drain()
        agent = world.agent("a")
        for _ in range(2):
            train(world, agent, tmp_path)
        world.drain()
        assert agent.request()["kind"] == "evaluate"
        with in_sandbox(world, agent.task, tmp_path, []):
            found = runpy.run_path("train.py", run_name="script")["evaluate"]("global_model.pth", "data.csv")
        assert found["accuracy"] > 0.9
        agent.complete(b"{}", **found)
        world.drain()
        assert world.view(buyer, answer.json()["job_id"])["round_list"][0]["evaluation"]["metrics"] == pytest.approx(found)

    def test_diloco_counts_steps_and_not_epochs(self, world: World, buyer: Person, tmp_path: Path) -> None:
        fields = {"dataset_id": upload(world, buyer, flowers()), "model_type": "logistic_regression", "target_column": "kind"}
        post(world, buyer, **fields, rounds=2, strategy="diloco", strategy_options={"local_steps": 7}, hyperparameters={"batch_size": 25})
        world.drain()
        assert train(world, world.agent("a"), tmp_path)["epoch"] == 3, "three batches an epoch"

    def test_a_strategys_needs_are_met(self, world: World, buyer: Person, tmp_path: Path) -> None:
        dataset_id = upload(world, buyer, flowers())
        fields = {"dataset_id": dataset_id, "model_type": "mlp", "target_column": "kind", "rounds": 2}
        diloco = {"strategy": "diloco", "hyperparameters": {"batch_size": 25}}
        assert post(world, buyer, **fields, **diloco).json()["warnings"] == []
        assert post(world, buyer, **fields, strategy="fedprox", strategy_options={"mu": 0.1}).json()["warnings"] == []


class TestTheOrdinaryWay:
    def test_agents_get_the_script_of_the_repository(self, world: World, buyer: Person) -> None:
        answer = post(world, buyer, dataset_id=upload(world, buyer, flowers()), model_type="mlp", target_column="kind")
        world.drain()
        task = world.agent("a").request()
        assert world.api.get(task["code_url"]).content == recipe_script()
        assert world.api.get(f"/jobs/{answer.json()['job_id']}/script", headers=buyer.headers).content == recipe_script()
        assert task["requirements_url"] is None

    def test_the_price_and_the_idempotency_key_are_those_of_any_job(self, world: World, buyer: Person) -> None:
        dataset_id = upload(world, buyer, flowers())
        body = {"title": "t", "dataset_id": dataset_id, "model_type": "mlp", "target_column": "kind", "chunks": 3, "rounds": 2}
        headers = buyer.headers | {"Idempotency-Key": "k"}
        first, again = (world.api.post("/jobs", json=body, headers=headers).json() for _ in range(2))
        assert first["price"] == 6
        assert again["job_id"] == first["job_id"]
        assert world.credits(buyer) == 94

    def test_the_seeds_own_call_works(self, world: World, buyer: Person) -> None:
        body = {"job_name": "synthetic-test", "dataset_name": "Synthetic", "model_type": "MLP", "shard_count": 2,
                "hyperparameters": {"learning_rate": 0.01, "epochs": 5, "batch_size": 64, "hidden_layers": [128, 64]}}  # fmt: skip
        answer = world.api.post("/jobs", json=body, headers=buyer.headers)
        assert answer.status_code == 201, answer.text
        view = world.view(buyer, answer.json()["job_id"])
        assert (view["title"], view["chunks"], view["dataset_name"]) == ("synthetic-test", 2, "synthetic")


class TestRefusals:
    @pytest.fixture
    def database(self, sqlite_database: Database) -> Database:
        """Nothing here depends on the kind of database."""
        return sqlite_database

    @pytest.mark.parametrize(("fields", "words"), [
        ({"model_type": "rnn"}, ["model_type: 'rnn' is not one of mlp, cnn, logistic_regression, linear_regression"]),
        ({"hyperparameters": {"epochs": 0, "learning_rate": "fast", "hidden_layers": [0]}, "chunks": 0},
         ["hyperparameters.epochs: input should be greater than or equal to 1", "hyperparameters.hidden_layers.0: ", "chunks: ",
          "hyperparameters.learning_rate: input should be a valid number"]),
        ({"hyperparameters": {"epochs": 2.5, "activation": "maxout"}},
         ["epochs: input should be a valid integer", "activation: input should be 'relu'"]),
        ({"model_type": "logistic_regression", "hyperparameters": {"hidden_layers": [3]}}, ["hyperparameters.hidden_layers: extra inputs"]),
        ({"target_column": None}, ["target_column: name the column", "length, width, colour, kind"]),
        ({"target_column": "species"}, ["target_column: the dataset has no column 'species'"]),
        ({"model_type": "linear_regression"}, ["target_column: 'kind' holds texts such as 'a'", "logistic_regression"]),
        ({"model_type": "cnn"}, ["model_type: a CNN needs square pictures", "there are 3 columns"]),
        ({"script": "print()"}, ["either script or model_type"]), ({"arguments": ["--x"]}, ["a model_type brings its own"]),
        ({"dataset_id": None}, ["either dataset_id or dataset_name"]),
    ])  # fmt: skip
    def test_every_wrong_field_is_named_before_credits_move(
        self, world: World, buyer: Person, fields: dict[str, Any], words: list[str]
    ) -> None:
        dataset_id = upload(world, buyer, flowers())
        answer = post(world, buyer, **({"dataset_id": dataset_id, "model_type": "mlp", "target_column": "kind"} | fields))
        assert answer.status_code == 422, answer.text
        for word in words:
            assert word in answer.json()["detail"]
        assert world.credits(buyer) == 100

    def test_what_only_the_rows_tell_is_said_by_the_script(self, world: World, buyer: Person, tmp_path: Path) -> None:
        rows = [["x", "y"], *([n, n * 0.37] for n in range(1100))]
        post(world, buyer, chunks=1, dataset_id=upload(world, buyer, rows), model_type="mlp", target_column="y")
        world.drain()
        with pytest.raises(ValueError, match="column 'y' holds no classes"):
            train(world, world.agent("a"), tmp_path)


class TestConfiguration:
    def test_the_defaults_are_the_seeds(self) -> None:
        assert recipes.parse("mlp", {}).model_dump() == DEFAULTS

    @given(
        st.sampled_from(sorted(recipes.MODELS)),
        st.fixed_dictionaries(
            {},
            optional={
                "learning_rate": st.floats(0, 10, exclude_min=True),
                "epochs": st.integers(1, 1000),
                "batch_size": st.integers(1, 65536),
                "hidden_layers": st.lists(st.integers(1, 4096), max_size=10),
                "activation": st.sampled_from(["relu", "tanh", "sigmoid", "gelu", "leaky_relu"]),
            },
        ),
    )
    def test_serialise_then_parse_is_equal(self, model_type: str, values: dict[str, Any]) -> None:
        known = {name: value for name, value in values.items() if name in recipes.MODELS[model_type].model_fields}
        parsed = recipes.parse(model_type, known)
        assert recipes.parse(model_type, json.loads(parsed.model_dump_json())) == parsed

    @pytest.mark.parametrize(("written", "meant"), [
        ("MNIST", "mnist"), ("Fashion-MNIST", "fashion_mnist"), ("FashionMNIST", "fashion_mnist"),
        ("Logistic Regression", "logistic_regression"),
    ])  # fmt: skip
    def test_names_may_be_written_as_people_write_them(self, written: str, meant: str) -> None:
        assert recipes.canonical(written) == meant
