"""The model's card and the metrics as files: complete, true, and harmless whatever users wrote."""

import csv
import hashlib
import io

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import CSV, SCRIPT, World, weights


def trained(world: World, buyer: Person, **fields: str) -> int:
    agents = [world.agent("a"), world.agent("b")]
    job_id = world.job(buyer, chunks=2, rounds=2, **fields)
    for number in (1, 2):
        for agent in agents:
            agent.request()
            points = [{"seq": seq, "epoch": seq + 1, "loss": 1.0 / (seq + number), "more": {"f1": 0.5}} for seq in range(2)]
            assert agent.about("metrics", points=points).status_code == 200
        for agent in agents:
            agent.finish(weights(float(number)), loss=0.25, accuracy=0.75)
        world.drain()
    return job_id


def test_card(world: World, buyer: Person) -> None:
    job_id = trained(world, buyer, strategy="fedavgm", hyperparameters='{"lr": 0.1}')
    card = world.api.get(f"/jobs/{job_id}/card", headers=buyer.headers).json()
    assert card["model_sha256"] == hashlib.sha256(world.model(buyer, job_id)).hexdigest()
    assert card["script_sha256"] == hashlib.sha256(SCRIPT.encode()).hexdigest()
    assert card["dataset_sha256"] == hashlib.sha256(CSV).hexdigest()
    assert (card["rows"], card["columns"], card["chunks"]) == (50, ["x", "y"], 2)
    assert (card["strategy"], card["strategy_options"]) == ("fedavgm", {"server_lr": 1.0, "momentum": 0.9})
    assert (card["mean_loss"], card["mean_accuracy"]) == (0.25, 0.75)
    assert [(row["round"], row["updates"], row["rows"]) for row in card["rounds"]] == [(1, 2, 50), (2, 2, 50)]
    assert card["rounds"][-1]["sha256"] == card["model_sha256"]
    assert {row["agent_id"]: (row["updates"], row["share"]) for row in card["agents"]} == {"a": (2, 0.5), "b": (2, 0.5)}
    text = world.api.get(f"/jobs/{job_id}/card.md", headers=buyer.headers).text
    for part in (card["model_sha256"], card["dataset_sha256"], "fedavgm", "| 2 | 2 | 50 |", "| `a` | 2 | 50.0% |"):
        assert part in text


def test_what_users_wrote_cannot_leave_its_place_in_the_markdown(world: World, buyer: Person) -> None:
    job_id = trained(world, buyer, title="x`\n# Another | heading <script>")
    text = world.api.get(f"/jobs/{job_id}/card.md", headers=buyer.headers)
    assert text.headers["content-disposition"].startswith("attachment")
    assert text.text.splitlines()[0] == "# Model card: `x' # Another / heading <script>`"


def test_a_job_without_a_model_has_a_card_too(world: World, buyer: Person) -> None:
    job_id = world.job(buyer)
    assert world.api.get(f"/jobs/{job_id}/card", headers=buyer.headers).json()["model_sha256"] is None
    assert "**Model**" not in world.api.get(f"/jobs/{job_id}/card.md", headers=buyer.headers).text


def test_metrics_as_csv(world: World, buyer: Person) -> None:
    job_id = trained(world, buyer)
    answer = world.api.get(f"/jobs/{job_id}/metrics.csv", headers=buyer.headers)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 8
    assert {(row["round"], row["agent_id"], row["epoch"]) for row in rows} == {(r, a, e) for r in "12" for a in "ab" for e in "12"}
    assert rows[0]["more"] == '{"f1": 0.5}'
