"""A no-code job and a script's outputs, through real processes: server, background, agents, sandbox."""

import io
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
import torch
from safetensors.torch import load

from tests.e2e.platform import AgentProcess, Platform, User, until

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(300)]

SCRIPT = """import os, torch
os.mkdir("outputs")
open("outputs/notes.txt", "w").write("seen")
torch.save({"w": torch.ones(2)}, "model.pth")
"""


def files_of(buyer: User, job_id: int) -> dict[str, dict[str, Any]]:
    """The job's files by kind, once the last of them is there."""

    def look() -> dict[str, dict[str, Any]] | None:
        found = {item["kind"]: item for item in buyer.call("GET", f"/jobs/{job_id}/artifacts").json()["items"]}
        return found if "safetensors" in found else None

    return until(look, 60, "safetensors of the final model")


def run(platform: Platform) -> None:
    AgentProcess.start_new(platform, "ada")
    buyer = User.register(platform, "buyer@example.com", "buyer")
    body = {"title": "no code", "dataset_name": "synthetic", "model_type": "logistic_regression", "chunks": 2, "seed": 1,
            "hyperparameters": {"epochs": 2}}  # fmt: skip
    answer = buyer.call("POST", "/jobs", json=body)
    assert answer.status_code == 201, answer.text
    other = buyer.submit(SCRIPT, b"a,b\n1,2\n", chunks="1")
    job_id = answer.json()["job_id"]
    job = buyer.ended(job_id, 200)
    assert (job["status"], job["recipe"]) == ("COMPLETED", "logistic_regression"), job
    points = buyer.call("GET", f"/jobs/{job_id}/metrics").json()["items"]
    assert sorted((point["chunk"], point["epoch"]) for point in points) == [(0, 1), (0, 2), (1, 1), (1, 2)]

    state = torch.load(io.BytesIO(buyer.model(job_id)), weights_only=True)
    safe = load(httpx.get(platform.url + files_of(buyer, job_id)["safetensors"]["url"], timeout=30).content)
    assert all(torch.equal(safe[name], tensor) for name, tensor in state.items())
    schema = httpx.get(platform.url + files_of(buyer, job_id)["schema"]["url"], timeout=30).json()["columns"]
    rows = pd.read_csv(synthetic(platform))
    labels = torch.tensor(rows.pop("label").to_numpy())
    figures = [(schema[name]["mean"], schema[name]["std"]) for name in rows.columns]
    inputs = (torch.tensor(rows.to_numpy()) - torch.tensor([mean for mean, _ in figures])) / torch.tensor([std for _, std in figures])
    accuracy = ((inputs.float() @ state["weight"].T + state["bias"]).argmax(dim=1) == labels).float().mean()
    assert accuracy > 0.85

    assert buyer.ended(other)["status"] == "COMPLETED"
    output = files_of(buyer, other)["output"]
    assert output["filename"] == "notes.txt"
    assert httpx.get(platform.url + output["url"], timeout=30).content == b"seen"


def synthetic(platform: Platform) -> Path:
    [path] = (platform.home / "objects" / "datasets" / "catalogue").glob("*.csv")
    return path


def test_from_words_to_a_model_and_from_a_script_to_its_files(platform: Platform) -> None:
    run(platform)
