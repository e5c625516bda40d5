"""The seed's plain script, unchanged, through real processes: server, background, agents, sandbox."""

import io
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from tests.e2e.platform import AgentProcess, Platform, User

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SCRIPT = (Path(__file__).resolve().parents[2] / "examples" / "plain" / "train.py").read_text()
CSV = b"sepal_length,sepal_width,petal_length,petal_width,species\n" + b"".join(
    b"%.1f,%.1f,%.1f,%.1f,%d\n" % (4 + n % 7 / 3, 2 + n % 5 / 3, 1 + n % 3 * 1.7, 0.1 + n % 3 * 0.8, n % 3) for n in range(153)
)


def run_seed_job(platform: Platform, sandbox: str) -> None:
    agents = [AgentProcess.start_new(platform, name, sandbox) for name in ("ada", "bob")]
    buyer = User.register(platform, "buyer@example.com", "buyer")
    job_id = buyer.submit(SCRIPT, CSV, "torch\npandas\n", keep_updates="true")
    assert buyer.credits() == 95
    job = buyer.ended(job_id, 240)
    assert (job["status"], job["completed_subtasks"], job["total_subtasks"]) == ("COMPLETED", 5, 5), job
    assert buyer.credits() == 95
    assert sum(agent.seller.credits() - 100 for agent in agents) == 5
    final = torch.load(io.BytesIO(buyer.model(job_id)), weights_only=True)
    check_mean(buyer, job_id, final)


def check_mean(buyer: User, job_id: int, final: dict[str, torch.Tensor]) -> None:
    """The final model is the float64 mean of the kept updates, weighted by rows, within one ulp."""
    rows = {subtask["chunk"]: subtask["rows"] for subtask in buyer.job(job_id)["subtasks"]}
    assert sorted(rows.values()) == [30, 30, 31, 31, 31]
    items = buyer.call("GET", f"/jobs/{job_id}/artifacts").json()["items"]
    updates = {item["chunk"]: item["url"] for item in items if item["kind"] == "update"}
    assert sorted(updates) == [0, 1, 2, 3, 4]
    content = {chunk: httpx.get(buyer.platform.url + url, timeout=30).content for chunk, url in updates.items()}
    states = {chunk: torch.load(io.BytesIO(data), weights_only=True) for chunk, data in content.items()}
    for name, merged in final.items():
        expected = sum((states[chunk][name].double().numpy() * rows[chunk] for chunk in sorted(rows)), np.zeros(merged.shape)) / 153
        ulp = np.spacing(np.abs(expected.astype(np.float32)))
        assert np.all(np.abs(merged.double().numpy() - expected) <= ulp), name


def test_in_the_process_sandbox(platform_on_each: Platform) -> None:
    run_seed_job(platform_on_each, "process")


@pytest.mark.docker
@pytest.mark.usefixtures("sandbox_image")
def test_in_docker(platform: Platform) -> None:
    run_seed_job(platform, "docker")


def test_a_failing_script_says_why_and_costs_what_was_shown(platform: Platform) -> None:
    agents = [AgentProcess.start_new(platform, name) for name in ("ada", "bob")]
    buyer = User.register(platform, "buyer@example.com", "buyer")
    job_id = buyer.submit("import pandas as pd\nprint('before')\npd.read_csv('data.csv')['no such column']\n# model.pth\n", CSV, chunks=1)
    job = buyer.ended(job_id)
    assert job["status"] == "FAILED"
    assert "KeyError" in job["reason"]
    assert "no such column" in job["reason"]
    assert "two providers" in job["reason"]
    assert buyer.credits() + sum(agent.seller.credits() - 100 for agent in agents) == 100
    logs = buyer.call("GET", f"/jobs/{job_id}/logs").json()["items"]
    assert any("before" in log["text"] for log in logs)


def test_a_script_that_writes_no_model_says_which_line_to_add(platform: Platform) -> None:
    AgentProcess.start_new(platform, "ada")
    buyer = User.register(platform, "buyer@example.com", "buyer")
    job_id = buyer.submit("print('trained, but never saved')\n", CSV, chunks=1)
    job = buyer.ended(job_id)
    assert job["status"] == "FAILED"
    assert "model.pth" in job["reason"]
    assert buyer.credits() == 100
