"""kill -9 of each process in the middle of a job: it ends right after a restart, paid once, the ledger clean."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests.e2e.platform import QUICK, AgentProcess, Platform, User, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CSV = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n % 2) for n in range(40))
# Trains until the file GO lies in the folder that is named on its command line: the test decides when.
SCRIPT = """
import pathlib, sys, time
import torch
import gridx_task
model = torch.nn.Linear(2, 1)
gridx_task.load_global_model(model)
go = pathlib.Path(sys.argv[1]) / "GO"
for epoch in range(100_000):
    gridx_task.report(epoch=epoch, loss=1.0 / (epoch + 1))
    if go.exists():
        break
    time.sleep(0.05)
with torch.no_grad():
    model.weight.add_(1.0)
torch.save(model.state_dict(), "model.pth")
"""


class Scene:
    """A two-round job whose first subtasks are training right now."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self.platform, self.folder = platform, folder
        self.agents = [AgentProcess.start_new(platform, name) for name in ("ada", "bob")]
        self.buyer = User.register(platform, "buyer@example.com", "buyer")
        self.job_id = self.buyer.submit(SCRIPT, CSV, chunks=3, rounds=2, arguments=f'["{folder}"]')
        until(self.is_training, 90, "two subtasks are training")

    def is_training(self) -> bool:
        return sum(subtask["epoch"] is not None for subtask in self.subtasks()) >= 2

    def subtasks(self) -> list[dict[str, Any]]:
        return self.buyer.job(self.job_id).get("subtasks", [])

    def go(self) -> None:
        (self.folder / "GO").touch()

    def ends_well(self) -> None:
        job = self.buyer.ended(self.job_id, 180)
        assert (job["status"], job["completed_subtasks"]) == ("COMPLETED", 6), job["reason"]
        assert self.buyer.credits() == 94
        assert sum(agent.seller.credits() - 100 for agent in self.agents) == 6
        model = torch.load(io.BytesIO(self.buyer.model(self.job_id)), weights_only=True)
        assert set(model) == {"weight", "bias"}


@pytest.fixture
def scene(tmp_path: Path) -> Callable[[Platform], Scene]:
    return lambda platform: Scene(platform, tmp_path)


class TestKill:
    def test_the_whole_server(self, platform_on_each: Platform, scene: Callable[[Platform], Scene]) -> None:
        playing = scene(platform_on_each)
        server = platform_on_each.server
        assert server is not None
        children = psutil.Process(server.pid).children(recursive=True)
        server.kill()
        server.wait(10)
        _, alive = psutil.wait_procs(children, 40)
        assert alive == [], "the server's children go with it"
        playing.go()  # the agents end their training while nobody listens
        platform_on_each.start()
        playing.ends_well()

    def test_the_background_process(self, platform_on_each: Platform, scene: Callable[[Platform], Scene]) -> None:
        playing = scene(platform_on_each)
        first = platform_on_each.child("gridx.background.__main__")
        first.kill()
        playing.go()
        playing.ends_well()
        assert platform_on_each.child("gridx.background.__main__").pid != first.pid

    def test_the_web_process(self, platform: Platform, scene: Callable[[Platform], Scene]) -> None:
        playing = scene(platform)
        platform.child("gridx.serve_api").kill()
        playing.go()
        playing.ends_well()

    def test_an_agent_that_comes_back_goes_on_with_its_attempt(self, platform: Platform, scene: Callable[[Platform], Scene]) -> None:
        playing = scene(platform)
        agent = playing.agents[0]
        assert agent.process is not None
        trainings = psutil.Process(agent.process.pid).children(recursive=True)
        agent.kill()
        _, alive = psutil.wait_procs(trainings, 20)
        assert alive == [], "its training goes with it"
        agent.start()
        playing.go()
        playing.ends_well()

    def test_an_agent_that_stays_away_loses_its_work_to_the_other(self, platform: Platform, scene: Callable[[Platform], Scene]) -> None:
        playing = scene(platform)
        playing.agents[0].kill()
        playing.go()
        playing.ends_well()
        assert playing.agents[0].seller.credits() == 100
        assert playing.agents[1].seller.credits() == 106

    @pytest.mark.long
    def test_a_server_that_is_away_for_longer_than_the_lease_throws_no_work_away(
        self, platform: Platform, scene: Callable[[Platform], Scene]
    ) -> None:
        playing = scene(platform)
        before = {subtask["id"]: subtask["agent_id"] for subtask in playing.subtasks() if subtask["epoch"] is not None}
        assert platform.server is not None
        platform.server.kill()
        platform.server.wait(10)
        back_at = time.monotonic() + 1.5 * float(QUICK["GRIDX_LEASE_S"])
        playing.go()  # both end their training while nobody listens
        until(lambda: time.monotonic() > back_at, 60, "the leases are over")
        platform.start()
        playing.ends_well()
        first_round = playing.buyer.call("GET", f"/jobs/{playing.job_id}", params={"round": 1}).json()["subtasks"]
        kept = {subtask["id"]: (subtask["agent_id"], subtask["attempt"]) for subtask in first_round if subtask["id"] in before}
        assert kept == {number: (agent, 1) for number, agent in before.items()}, "each in its first attempt, by who had begun it"
