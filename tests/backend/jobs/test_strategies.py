"""A job's strategy, from its form to its final model: options checked, state kept from round to round, refusals before credits move."""

import io
from typing import Any

import pytest
import torch
from sqlalchemy import select

from gridx.background.work import Work
from gridx.jobs.models import Round
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import InlineExecutor, World, weights

STATEFUL = ["fedavgm", "fedadagrad", "fedadam", "fedyogi", "diloco"]


def train(world: World, buyer: Person, *, restart: bool = False, values: list[float], rounds: int = 3, **fields: Any) -> int:
    """A job of one agent for each value; in round r the agent with value v sends v * r."""
    agents = [world.agent(f"{fields['strategy']}-{restart}-{number}") for number in range(len(values))]
    job_id = world.job(buyer, chunks=len(values), rounds=rounds, **fields)
    for number in range(1, rounds + 1):
        for agent in agents:
            agent.request()
        for agent in agents:
            agent.finish(weights(values[agent.task["chunk"]] * number))
        if restart:
            world.work.keeper.close()
            world.work = Work(world.settings, world.database, world.store, world.clock, InlineExecutor())
        world.drain()
    assert world.view(buyer, job_id)["status"] == "COMPLETED"
    return job_id


def final(world: World, buyer: Person, job_id: int) -> dict[str, torch.Tensor]:
    return torch.load(io.BytesIO(world.model(buyer, job_id)), weights_only=True)


def assert_refused(world: World, buyer: Person, fields: dict[str, Any], words: str) -> None:
    """422 with these words, and no credit moved."""
    before = world.credits(buyer)
    answer = world.submit(buyer, **fields)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]
    assert world.credits(buyer) == before


class TestState:
    @pytest.mark.parametrize("strategy", STATEFUL)
    def test_a_restart_between_any_two_rounds_changes_nothing(self, world: World, buyer: Person, strategy: str) -> None:
        jobs = [train(world, buyer, restart=restart, values=[1.0, 2.0], strategy=strategy, seed="1") for restart in (False, True)]
        first, second = (world.job_row(job_id).final_model_sha256 for job_id in jobs)
        assert first == second

    def test_momentum_is_carried_on(self, world: World, buyer: Person) -> None:
        job_id = train(world, buyer, values=[1.0, 1.0], strategy="fedavgm", strategy_options='{"momentum": 0.5}')
        # Means 1, 2, 3. Round 2: v = -1, w = 2. Round 3: v = -0.5 + (2 - 3) = -1.5, w = 3.5.
        assert final(world, buyer, job_id)["fc.bias"].tolist() == [3.5] * 3

    def test_only_the_last_state_is_kept(self, world: World, buyer: Person) -> None:
        job_id = train(world, buyer, values=[1.0], strategy="fedadam")
        with world.database.read() as session:
            keys = session.scalars(select(Round.state_key).where(Round.job_id == job_id).order_by(Round.number)).all()
        assert keys[:2] == [None, None]
        assert keys[2] is not None
        assert world.store.stat(keys[2]) is not None


class TestRobust:
    def test_krum_says_whom_it_chose(self, world: World, buyer: Person) -> None:
        job_id = train(world, buyer, values=[1.0, 1.01, 0.99, 1.0, 500.0], rounds=1, strategy="krum")
        assert abs(final(world, buyer, job_id)["fc.bias"][0].item() - 1.0) < 0.02
        texts = [event["text"] for event in world.view(buyer, job_id)["events"]]
        assert any("krum chose chunk " in text and "chunk 4" not in text for text in texts)


class TestForm:
    def test_options_are_shown_with_their_defaults(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, strategy="fedadam", strategy_options='{"eta": 0.02}', rounds=2)
        view = world.view(buyer, job_id)
        assert view["strategy"] == "fedadam"
        assert view["strategy_options"] == {"eta": 0.02, "tau": 0.001, "beta1": 0.9, "beta2": 0.99}

    @pytest.mark.parametrize(("fields", "words"), [
        ({"strategy": "fedsgd"}, "strategy: 'fedsgd' is not one of"),
        ({"strategy": "fedprox", "strategy_options": '{"mu": -1}'}, "strategy_options.mu: "),
        ({"strategy": "fedavg", "strategy_options": '{"mu": 1}'}, "strategy_options.mu: "),
        ({"strategy": "fedavgm", "strategy_options": "momentum"}, "strategy_options: not JSON"),
        ({"strategy": "krum", "strategy_options": '{"f": 2}', "chunks": "5"}, "needs 7 chunks or more; this job has 5"),
        ({"strategy": "bulyan", "chunks": "5"}, "needs 7 chunks or more"),
        ({"strategy": "diloco", "rounds": "1"}, "rounds: diloco keeps a momentum"),
    ])  # fmt: skip
    def test_refused_by_name_before_credits_move(self, world: World, buyer: Person, fields: dict[str, Any], words: str) -> None:
        assert_refused(world, buyer, fields, words)

    def test_the_script_gets_what_the_strategy_needs_and_the_buyers_value_wins(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1, strategy="fedprox", strategy_options='{"mu": 0.3}')
        assert agent.request()["hyperparameters"] == {"mu": 0.3}
        agent.finish(weights())
        world.drain()
        world.job(buyer, chunks=1, rounds=2, strategy="diloco", hyperparameters='{"local_steps": 7, "lr": 1}')
        assert agent.request()["hyperparameters"] == {"local_steps": 7, "lr": 1}

    @pytest.mark.parametrize(("strategy", "script", "is_warned"), [
        ("fedprox", "number = 1\nopen('model.pth')", True), ("fedprox", "loss += gridx_task.proximal_term(m)\n'model.pth'", False),
        ("diloco", "'model.pth'", True), ("diloco", "steps = hyper['local_steps']\n'model.pth'", False), ("fedadam", "'model.pth'", False),
    ])  # fmt: skip
    def test_a_script_that_does_not_play_along_is_warned_of(
        self, world: World, buyer: Person, strategy: str, script: str, is_warned: bool
    ) -> None:
        warnings = world.submit(buyer, script=script, strategy=strategy, rounds=2).json()["warnings"]
        assert any(strategy in text for text in warnings) is is_warned

    def test_a_round_cannot_close_with_fewer_updates_than_the_rule_needs(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=6, strategy="krum", min_updates=1)
        assert world.view(buyer, job_id)["min_updates"] == 5


class TestPartitioners:
    def test_a_stratified_job_gives_each_chunk_every_class(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=3, partitioner="stratified", partitioner_options='{"column": "y"}')
        assert world.view(buyer, job_id)["partitioner_options"] == {"column": "y"}
        agent = world.agent("a")
        for _ in range(3):
            task = agent.request()
            rows = world.api.get(task["chunk_data_url"]).content.decode().split()[1:]
            assert {row.split(",")[1] for row in rows} == {"0", "1", "2"}
            agent.finish(weights())

    @pytest.mark.parametrize(("fields", "words"), [
        ({"partitioner": "random"}, "partitioner: 'random' is not one of iid, contiguous, stratified"),
        ({"partitioner": "stratified"}, "partitioner_options.column: Field required"),
        ({"partitioner": "stratified", "partitioner_options": '{"column": "z"}'}, "the dataset has no column 'z'; it has: x, y"),
        ({"partitioner": "dirichlet", "partitioner_options": '{"column": "y", "alpha": -1}'}, "partitioner_options.alpha: "),
        ({"partitioner": "sizes", "partitioner_options": '{"proportions": [1, 2]}'}, "2 numbers for 5 chunks"),
    ])  # fmt: skip
    def test_refused_by_name_before_credits_move(self, world: World, buyer: Person, fields: dict[str, Any], words: str) -> None:
        assert_refused(world, buyer, fields, words)

    def test_what_only_the_rows_tell_fails_the_job_and_gives_the_credits_back(self, world: World, buyer: Person) -> None:
        job_id = world.job(buyer, chunks=5, partitioner="by_column", partitioner_options='{"column": "y"}')
        view = world.view(buyer, job_id)
        assert view["status"] == "FAILED"
        assert "holds 3 different values" in view["reason"]
        assert world.credits(buyer) == 100


class TestSchema:
    def test_every_chunk_gets_what_is_known_of_the_whole_file(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=2, rounds=2)
        for _ in range(4):
            url = agent.request()["schema_url"]
            assert world.api.get(url).json()["columns"]["y"]["categories"] == [0, 1, 2]
            agent.finish(weights())
            world.drain()

    def test_a_large_file_is_described_only_for_a_script_that_asks(
        self, world: World, buyer: Person, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gridx.background.prepare.DESCRIBED_BYTES", 10)
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        assert agent.request()["schema_url"] is None
        agent.finish(weights())
        world.drain()
        world.job(buyer, chunks=1, script="import gridx_task\ngridx_task.schema()\n'model.pth'\n")
        assert agent.request()["schema_url"] is not None

    @pytest.mark.parametrize(("line", "words"), [
        ("encoder = LabelEncoder()", ["line 2: LabelEncoder", "['categories']"]),
        ("scaler = StandardScaler()", ["line 2: StandardScaler", "['std']"]),
        ("classes = frame['y'].nunique()", ["line 2: nunique", "['categories']"]), ("x = MinMaxScaler().fit(x)", ["['min'] and ['max']"]),
    ])  # fmt: skip
    def test_a_script_that_fits_on_its_chunk_is_told_what_to_write(self, world: World, buyer: Person, line: str, words: list[str]) -> None:
        answer = world.submit(buyer, script=f"from sklearn.preprocessing import LabelEncoder\n{line}\n'model.pth'\n").json()
        assert any(all(word in warning for word in words) for warning in answer["warnings"]), answer["warnings"]
        with_schema = world.submit(buyer, script=f"import gridx_task\n{line}\ngridx_task.schema()\n'model.pth'\n").json()
        assert with_schema["warnings"] == []
