"""NUL, which PostgreSQL cannot store, in everything that an agent or an address may hold: never a 500, and never a report lost."""

import pytest

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import HARDWARE, World


class TestAgentsMessages:
    def test_what_a_script_said_is_kept_without_it(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        assert agent.about("metrics", points=[{"seq": 0, "loss": 0.5, "more": {"f\x001": 0.5}}]).json() == {"stored": 1}
        assert agent.about("logs", offset=0, text="a\x00b").status_code == 200
        assert agent.fail("agent", "no \x00 device").status_code == 200
        attempt = world.view(buyer, job_id)["subtasks"][0]
        assert attempt["reason"] == "no \ufffd device"

    @pytest.mark.parametrize("path", ["heartbeat", "metrics", "logs", "upload_url", "complete_task", "fail_task"])
    def test_a_strange_lease_token_holds_nothing(self, world: World, buyer: Person, path: str) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        task = agent.request()
        more = {"points": [], "offset": 0, "text": "x", "size": 1, "sha256": "0" * 64, "kind": "agent", "reason": "x"}
        answer = agent.call(path, task_id=task["task_id"], lease_token="\x00", **more)
        assert answer.status_code == (200 if path == "heartbeat" else 409), answer.text

    def test_a_machine_is_registered_without_it(self, world: World, buyer: Person) -> None:
        agent = world.agent("a", hostname="lab\x00pc")
        assert world.api.get("/stats/agents/a", headers=agent.owner.headers).json()["hostname"] == "lab\ufffdpc"
        assert HARDWARE["hostname"] == "lab-pc-07"


class TestAddresses:
    @pytest.mark.parametrize("path", ["/stats/agents/%00", "/datasets/uploads/%00"])
    def test_is_refused(self, world: World, buyer: Person, path: str) -> None:
        assert world.api.get(path, headers=buyer.headers).status_code == 422

    def test_is_refused_where_a_machine_is_removed(self, world: World) -> None:
        seller = world.person("sam@sellers.example.com", "seller")
        assert world.api.delete("/agent/%00", headers=seller.headers).status_code == 422
