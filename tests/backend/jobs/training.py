"""Runs a job's real script, chunk by chunk, in the test's own process: what an agent does, without its sandbox."""

import json
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from gridx_worker import task as sandbox_side
from tests.backend.jobs.conftest import FakeAgent, World

_HELPER = str(Path(sandbox_side.__file__).parent)
_FILES = {"code_url": "train.py", "chunk_data_url": "data.csv", "global_model_url": "global_model.pth", "schema_url": "schema.json"}


def train(world: World, agent: FakeAgent, folder: Path) -> dict[str, Any]:
    """Take a task, run its script, upload what it leaves. Returns the script's last report. What the script raises is raised."""
    task = agent.request()
    assert task["task_id"] is not None, "there is no work"
    reports: list[dict[str, Any]] = []
    with in_sandbox(world, task, folder, reports):
        runpy.run_path("train.py", run_name="__main__")
    agent.about("metrics", points=[{"seq": seq, **report} for seq, report in enumerate(reports)])
    last = reports[-1] if reports else {}
    agent.finish((folder / "model.pth").read_bytes(), **{name: value for name, value in last.items() if name in ("loss", "accuracy")})
    return last


def evaluate(world: World, task: dict[str, Any], folder: Path, model: bytes, csv: bytes) -> dict[str, float]:
    """What the script of `task` says about a model on other rows."""
    with in_sandbox(world, task, folder, []):
        Path("final.pth").write_bytes(model)
        Path("held_out.csv").write_bytes(csv)
        return runpy.run_path("train.py", run_name="script")["evaluate"]("final.pth", "held_out.csv")


@contextmanager
def in_sandbox(world: World, task: dict[str, Any], folder: Path, reports: list[dict[str, Any]]) -> Iterator[None]:
    """The working folder, command line, environment and seeds that the training contract promises."""
    folder.mkdir(parents=True, exist_ok=True)
    for field, name in _FILES.items():
        (folder / name).unlink(missing_ok=True)
        if task[field]:
            (folder / name).write_bytes(world.api.get(task[field]).content)
    before, argv, path, threads = Path.cwd(), sys.argv, list(sys.path), torch.get_num_threads()
    torch.set_num_threads(1)  # as an agent with one core does
    environment = {"GRIDX_HYPERPARAMETERS": json.dumps(task["hyperparameters"]), "GRIDX_ROUND": str(task["round"])}
    torch.manual_seed(task["seed"])
    np.random.seed(task["seed"])
    sys.modules.pop("gridx_task", None)  # it remembers the folder it was imported in
    os.chdir(folder)
    sys.argv, sys.path = ["train.py", *task["arguments"]], [_HELPER, *path]
    try:
        with patch.dict(os.environ, environment):
            import gridx_task  # pyright: ignore[reportMissingImports] - as a script finds it

            with patch.object(gridx_task, "report", lambda **values: reports.append(values)):
                yield
    finally:
        os.chdir(before)
        torch.set_num_threads(threads)
        sys.argv, sys.path = argv, path
        sys.modules.pop("gridx_task", None)
