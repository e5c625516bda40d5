"""A job with held-out rows, and one with a machine that stalls, through real processes."""

import signal

import psutil
import pytest

from tests.e2e.platform import EXAMPLES, AgentProcess, Platform, User, breast_cancer, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLE = EXAMPLES / "breast_cancer"
SLEEPY = """
import time, torch
for _ in range(20):
    time.sleep(0.02)
torch.save({"w": torch.ones(3)}, "model.pth")
"""


def test_each_round_is_scored_by_two_sellers_on_rows_that_nobody_trained_on(platform: Platform) -> None:
    agents = [AgentProcess.start_new(platform, name) for name in ("ada", "bob")]
    buyer = User.register(platform, "buyer@example.com", "buyer")
    job_id = buyer.submit((EXAMPLE / "train.py").read_text(), breast_cancer(), rounds=3, held_out=0.2, seed=1)
    job = buyer.ended(job_id)
    assert job["status"] == "COMPLETED", job["reason"]
    for row in job["round_list"]:
        assert row["evaluation"]["rows"] == 114
        assert sorted(row["evaluation"]["agents"]) == ["ada", "bob"]
        assert row["evaluation"]["differ"] == []
    scores = [row["evaluation"]["metrics"]["accuracy"] for row in job["round_list"]]
    assert scores[-1] > 0.85
    assert scores[job["best_round"] - 1] == max(scores)
    assert buyer.credits() == 100 - 3 * (5 + 2)
    assert sum(agent.seller.credits() - 100 for agent in agents) == 21
    assert platform.gridx("check-ledger").returncode == 0


def test_a_machine_that_stalls_does_not_hold_up_the_round(platform: Platform) -> None:
    agents = [AgentProcess.start_new(platform, name) for name in ("ada", "bob")]
    buyer = User.register(platform, "buyer@example.com", "buyer")
    job_id = buyer.submit(SLEEPY, b"x\n" + b"1\n" * 50, chunks=4)
    stalled = until(lambda: _scripts_of(agents[0]), 60, "ada's machine is at work")
    for process in stalled:  # its agent goes on, heartbeats and all
        process.send_signal(signal.SIGSTOP)
    job = buyer.ended(job_id)
    assert job["status"] == "COMPLETED", job["reason"]
    assert any("is late; bob tries it as well" in event["text"] for event in job["events"])
    assert sum(agent.seller.credits() - 100 for agent in agents) == 4
    assert buyer.credits() == 96
    assert platform.gridx("check-ledger").returncode == 0


def _scripts_of(agent: AgentProcess) -> list[psutil.Process]:
    """The processes that run a script for an agent: its launcher's children."""
    assert agent.process is not None
    launchers = psutil.Process(agent.process.pid).children()
    return [child for launcher in launchers for child in launcher.children()]
