"""Encoders and scalers fitted on a chunk: warned of, refused in words that name the class and the cure; and the cure works."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch

from gridx.core.db import Database
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World
from tests.backend.jobs.training import train

BEGINNING = """
import pandas as pd
import torch
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch import nn

import gridx_task

frame = pd.read_csv("data.csv")
"""
FITTED = """
labels = LabelEncoder().fit_transform(frame["kind"])
classes = len(set(labels))
numbers = StandardScaler().fit_transform(frame[["length", "width"]])
"""
FROM_SCHEMA = """
columns = gridx_task.schema()["columns"]
names = columns["kind"]["categories"]
classes = len(names)
labels = frame["kind"].map(names.index).to_numpy()
numbers = frame[["length", "width"]].to_numpy()
for place, name in enumerate(["length", "width"]):
    numbers[:, place] = (numbers[:, place] - columns[name]["mean"]) / columns[name]["std"]
"""
END = """
model = nn.Linear(2, classes)
gridx_task.load_global_model(model)
x, y = torch.tensor(numbers, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(40):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pth")
"""
NAMES = ["common", "rare", "usual"]


def rows(count: int, seed: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A table in which one class of three is rare; its values, and its classes by number."""
    random = np.random.default_rng(seed)
    kinds = np.where(np.arange(count) % 100 == 0, 1, np.where(np.arange(count) % 2, 0, 2))
    values = np.array([[0.0, 0.0], [4000.0, -0.04], [2000.0, 0.04]])[kinds] + random.normal(size=(count, 2)) * [500, 0.01]
    lines = [f"{x:.3f},{y:.5f},{NAMES[kind]}" for (x, y), kind in zip(values.tolist(), kinds.tolist(), strict=True)]
    return "length,width,kind\n" + "\n".join(lines) + "\n", values, kinds


@pytest.fixture
def database(sqlite_database: Database) -> Database:
    """Nothing here depends on the kind of database."""
    return sqlite_database


def test_refused_in_words_that_name_the_class_and_the_cure(world: World, buyer: Person, tmp_path: Path) -> None:
    text, _, kinds = rows(400, 1)
    header, *lines = text.split("\n")[:-1]
    rare = [line for line, kind in zip(lines, kinds, strict=True) if kind == 1] * 20
    others = [line for line, kind in zip(lines, kinds, strict=True) if kind != 1]
    # Cut in order, the last of three chunks has no rare row.
    ordered = [*rare, *others[:200], *rare, *others[200:]]
    csv = "\n".join([header, *ordered]).encode() + b"\n"
    answer = world.submit(buyer, csv=csv, script=BEGINNING + FITTED + END, chunks=3, partitioner="contiguous")
    warnings = "\n".join(answer.json()["warnings"])
    assert "LabelEncoder" in warnings
    assert "StandardScaler" in warnings
    world.drain()
    agents = [world.agent(f"pc-{number}") for number in range(3)]
    for number in (0, 1, 2, 0):
        train(world, agents[number], tmp_path / str(number))
        world.drain()
    view = world.view(buyer, answer.json()["job_id"])
    assert view["status"] == "FAILED"
    assert "has no row with 'kind' = 'rare'" in view["reason"]
    assert "take gridx_task.schema()['columns']['kind']['categories']" in view["reason"]
    assert "stratified by 'kind'" in view["reason"]


def test_with_the_schema_the_job_is_as_good_as_training_on_the_whole_file(world: World, buyer: Person, tmp_path: Path) -> None:
    text, values, kinds = rows(400, 1)
    answer = world.submit(buyer, csv=text.encode(), script=BEGINNING + FROM_SCHEMA + END, chunks=4, rounds=2, seed=1)
    assert answer.json()["warnings"] == []
    world.drain()
    agent = world.agent("pc")
    for _ in range(2):
        for number in range(4):
            train(world, agent, tmp_path / f"chunk-{number}")
        world.drain()
    job_id = answer.json()["job_id"]
    assert world.view(buyer, job_id)["status"] == "COMPLETED"

    _, new, truth = rows(2000, 2)
    inputs = torch.tensor((new - values.mean(axis=0)) / values.std(axis=0), dtype=torch.float32)
    federated = torch.load(io.BytesIO(world.model(buyer, job_id)), weights_only=True)
    whole = trained_on_everything(values, kinds)
    assert accuracy(whole, inputs, truth) > 0.97
    assert accuracy(federated, inputs, truth) > accuracy(whole, inputs, truth) - 0.02


def trained_on_everything(values: np.ndarray, kinds: np.ndarray) -> dict[str, torch.Tensor]:
    """The same model and the same steps, on all rows at once."""
    x = torch.tensor((values - values.mean(axis=0)) / values.std(axis=0), dtype=torch.float32)
    torch.manual_seed(1)
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(80):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), torch.tensor(kinds, dtype=torch.int64)).backward()
        optimizer.step()
    return model.state_dict()


def accuracy(state: dict[str, torch.Tensor], inputs: torch.Tensor, truth: np.ndarray) -> float:
    scores = inputs @ state["weight"].T + state["bias"]
    return float((scores.argmax(dim=1).numpy() == truth).mean())
