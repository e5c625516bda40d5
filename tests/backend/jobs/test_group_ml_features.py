"""What the group-training platform that Grid-X unites did, feature by feature, shown once each; test_group_ml_requirements.py has what it
required of itself.
"""

import hashlib
from pathlib import Path

import pytest
from sqlalchemy import select

from gridx.agents.models import Agent
from gridx.core.db import Database
from gridx.jobs.recipes import options as recipes
from gridx_worker.cli import build_parser
from gridx_worker.config import build_config
from gridx_worker.state import Identity, State
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World
from tests.backend.jobs.test_group_ml_requirements import table_job
from tests.backend.jobs.training import train


@pytest.fixture
def database(sqlite_database: Database) -> Database:
    """Nothing here depends on the kind of database."""
    return sqlite_database


class TestFeatures:
    def test_a_job_is_split_trained_in_parallel_and_aggregated(self, world: World, buyer: Person, tmp_path: Path) -> None:
        agents = [world.agent(f"pc-{number}") for number in range(2)]
        job_id = table_job(world, buyer, chunks=2, hyperparameters={"epochs": 2})
        for number, agent in enumerate(agents):
            train(world, agent, tmp_path / str(number))
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert world.model(buyer, job_id)

    def test_polling_without_work_answers_nothing_and_when_to_ask_again(self, world: World) -> None:
        answer = world.agent("pc-1").request()
        assert answer["task_id"] is None
        assert answer["poll_after_s"] is not None

    def test_uploads_go_to_signed_links_that_end_and_workers_hold_no_credentials(self, world: World, buyer: Person) -> None:
        agent = world.agent("pc-1")
        world.job(buyer, chunks=1)
        agent.request()
        link = agent.about("upload_url", size=10).json()
        assert "sig=" in link["url"]
        assert link["expires_s"] > 0
        world.clock.advance(link["expires_s"] + 1)
        assert world.api.put(link["url"], content=b"0" * 10).status_code == 403

    def test_tokens_are_stored_hashed(self, world: World) -> None:
        agent = world.agent("pc-1")
        with world.database.read() as session:
            stored = session.scalar(select(Agent))
            assert stored is not None
            values = [str(getattr(stored, column.key)) for column in Agent.__table__.columns]
        assert agent.token not in values
        assert hashlib.sha256(agent.token.encode()).hexdigest() in values

    def test_a_stale_node_loses_its_task_to_another(self, world: World, buyer: Person) -> None:
        silent, other = world.agent("silent"), world.agent("other")
        world.job(buyer, chunks=1)
        task = silent.request()
        world.clock.advance(61)
        other.call("heartbeat")
        world.expire()
        assert other.request()["task_id"] == task["task_id"]

    def test_the_workers_variables_are_read(self, tmp_path: Path) -> None:
        environment = {"COORDINATOR_URL": "http://lab:9", "WORKER_HEARTBEAT_INTERVAL": "7", "WORKER_POLL_INTERVAL": "3"}
        config = build_config(build_parser().parse_args(["run", "--state-dir", str(tmp_path)]), environment)
        assert (config.server, config.heartbeat_s, config.poll_s) == ("http://lab:9", 7, 3)

    def test_a_worker_keeps_its_identity_over_restarts(self, tmp_path: Path) -> None:
        state = State(tmp_path)
        identity = Identity(agent_id="pc-1", server="http://lab", token="t")
        state.save(identity)
        state.close()
        again = State(tmp_path)
        assert again.load(server="http://lab") == identity
        again.close()

    @pytest.mark.parametrize(("path", "who"), [
        ("/health", None), ("/stats/summary", None), ("/stats/agents", "buyer"), ("/jobs/list/{user}", "buyer"), ("/jobs/{job}", "buyer"),
        ("/jobs/{job}/results", "buyer"), ("/jobs/{job}/artifacts", "buyer"), ("/jobs/{job}/metrics", "buyer"),
        ("/jobs/{job}/metrics.csv", "buyer"),
    ])  # fmt: skip
    def test_every_reading_endpoint_has_its_equal(self, world: World, buyer: Person, path: str, who: str | None) -> None:
        job_id = world.job(buyer)
        answer = world.api.get(path.format(job=job_id, user=buyer.id), headers=buyer.headers if who else {})
        assert answer.status_code == 200

    def test_every_model_and_dataset_has_a_choice_on_the_form(self) -> None:
        root = Path(__file__).resolve().parents[3]
        source = (root / "frontend/src/shared/learning/recipes.ts").read_text()
        for name in (*recipes.MODELS, "mnist", "fashion_mnist", "synthetic"):
            assert f'name: "{name}"' in source
