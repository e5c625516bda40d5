"""How a machine stands: what it takes, why it idles, and quarantine for one whose updates are refused again and again."""

from datetime import timedelta
from typing import Any

from gridx.background.quarantine import quarantine_suspects
from gridx.jobs.models import Job
from gridx.jobs.standing import QUARANTINE, STREAK
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import HARDWARE, FakeAgent, World, pth, weights

BAD = pth(weights(float("nan")))


def profile(agent: FakeAgent, **said: Any) -> dict[str, Any]:
    answer = agent.call("profile", **said)
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_recipe(world: World, job_id: int) -> None:
    with world.database.write() as session:
        session.get_one(Job, job_id).recipe = "linear"


def refuse(world: World, buyer: Person, agent: FakeAgent) -> int:
    """A job of one chunk, whose first update is refused. It then fails as well at the only provider, and is over."""
    job_id = world.job(buyer, chunks=1)
    for _ in range(2):
        if agent.request()["task_id"] is not None:
            agent.finish(BAD)
            world.drain()
    return job_id


class TestAccepts:
    def test_a_machine_for_recipes_gets_no_script_of_a_buyer(self, world: World, buyer: Person) -> None:
        seller = world.person("s@sellers.example.com", "seller")
        key = world.api.post("/agent/keys", json={"label": "k"}, headers=seller.headers).json()["key"]
        body = {"agent_id": "careful", "hardware": HARDWARE, "profile": {"accepts": "recipes"}}
        token = world.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {key}"}).json()["token"]
        agent = FakeAgent(world.api, "careful", token, seller)
        job_id = world.job(buyer, chunks=1)
        assert agent.request()["task_id"] is None
        assert "recipes only" in profile(agent, accepts="recipes")["idle_because"]
        assert "none takes it now" in world.view(buyer, job_id)["waiting_for"]
        make_recipe(world, job_id)
        assert agent.request()["task_id"] is not None

    def test_nobody_waits_for_such_a_machine(self, world: World, buyer: Person) -> None:
        """What one seller failed waits for others who could do it; this one could not."""
        careful, other = world.agent("careful"), world.agent("other")
        profile(careful, accepts="recipes")
        world.job(buyer, chunks=1)
        other.request()
        other.fail(kind="memory", reason="too little memory")
        assert other.request()["task_id"] is not None


class TestWhyIdle:
    def test_in_words(self, world: World, buyer: Person) -> None:
        agent = world.agent("small", ram_bytes=2**30)
        assert profile(agent)["idle_because"] == "no job waits for a machine"
        assert profile(agent, paused="working hours")["idle_because"] == "working hours"
        world.job(buyer, chunks=1, needs='{"ram_bytes": 4294967296}')
        assert "more memory than the 1024 MB" in profile(agent)["idle_because"]
        world.job(buyer, chunks=1, needs='{"ram_bytes": 0, "gpu": true}')
        assert "GPU" in profile(agent)["idle_because"]
        world.job(buyer, chunks=1)
        assert profile(agent)["idle_because"] is None
        agent.request()
        agent.finish(weights())
        world.drain()
        said = profile(agent)
        assert (said["earned"], said["accepted"], said["idle_because"][:14]) == (1, 1, "the jobs that ")


class TestDoctor:
    def test_its_report_is_on_the_owners_page_only(self, world: World, buyer: Person) -> None:
        agent = world.agent("ada")
        checks = [{"name": "disk", "problem": "full", "fix": "make room"}, {"name": "Docker"}]
        profile(agent, doctor={"age_s": 3600, "checks": checks, "score": 1234.5})
        profile(agent, paused="working hours")  # a later word without a report leaves it
        path = "/stats/agents/ada"
        mine = world.api.get(path, headers=agent.owner.headers).json()
        assert (mine["doctor"]["score"], mine["paused"]) == (1234.5, "working hours")
        assert mine["doctor"]["checks"][0] == checks[0]
        others = world.api.get(path, headers=buyer.headers).json()
        assert (others["doctor"], others["paused"], others["quarantine_reason"]) == (None, None, None)
        for report in (
            {"age_s": -1, "checks": []},
            {"age_s": 1, "checks": [{"name": "x"}] * 100},
            {"age_s": 1, "checks": [], "score": "fast"},
        ):
            assert agent.call("profile", doctor=report).status_code == 422


class TestQuarantine:
    def test_refused_again_and_again_in_several_jobs(self, world: World, buyer: Person) -> None:
        agent = world.agent("broken")
        for _ in range(STREAK):
            refuse(world, buyer, agent)
            if quarantine_suspects(world.work):
                break
        world.job(buyer, chunks=1)
        assert agent.request()["task_id"] is None
        said = profile(agent)["idle_because"]
        assert f"its last {STREAK} updates" in said
        assert "gridx-worker doctor" in said
        mine = world.api.get("/stats/agents/broken", headers=agent.owner.headers).json()
        assert mine["quarantine_reason"] == said
        world.clock.advance((QUARANTINE + timedelta(minutes=1)).total_seconds())
        assert agent.request()["task_id"] is not None
        assert quarantine_suspects(world.work) == 0, "what led to it is past"

    def test_what_is_not_held_against_a_machine(self, world: World, buyer: Person) -> None:
        """Its jobs' failures, one job's bad script, and refusals before an update that was accepted."""
        agent = world.agent("ada")
        for kind in ("dependencies", "script", "memory", "dependencies", "dependencies"):
            world.job(buyer, chunks=1)
            agent.request()
            agent.fail(kind=kind, reason="pip could not install the requirements")
        world.api.post("/jobs/1/cancel", headers=buyer.headers)
        assert quarantine_suspects(world.work) == 0
        for refusals in (2, 1):
            for _ in range(refusals):
                refuse(world, buyer, agent)
            world.job(buyer, chunks=1)
            while agent.request()["task_id"] is not None:
                agent.finish(weights())
                world.drain()
            assert quarantine_suspects(world.work) == 0
