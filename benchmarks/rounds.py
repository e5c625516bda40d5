"""Five rounds of the breast cancer example on two machines, from submission to the end, and what the platform adds to each subtask.

    python benchmarks/rounds.py [--rounds 5] [--jobs 3] [--flower PYTHON]

Ours: a server that has served a job before and two agents on loopback, once in the process sandbox and, where Docker answers and the image
is there, once in containers. Warm: the agents have had nothing to do for some seconds, and keep a sandbox ready. Cold: the job comes right
after another's end, before they have made the next one ready; the process sandbox keeps its launcher, so nothing of it is cold.
What is added to a subtask is told of one agent alone, which has a core to itself as a provider's machine has: ten chunks, one after the
other, in a second round, since updates of a first one wait until most of them agree on their shapes.

The peer: Flower's deployment engine, that is a SuperLink and two SuperNodes on loopback, which have run for a while, and `flwr run` of the
same model, rows, rounds and epochs. PYTHON is the interpreter of an environment in which `flwr` is installed (`make bench` makes one under
var/peers).
"""

import argparse
import itertools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.e2e.platform import EXAMPLES, AgentProcess, Platform, User, breast_cancer, free_port, until
from tests.support.docker_host import IMAGE, has_image

EXAMPLE = EXAMPLES / "breast_cancer" / "train.py"
FLOWER = EXAMPLES.parent / "var" / "peers" / "flower" / "bin" / "python"
MACHINES, ALONE, EPOCHS, PATIENCE_S = 2, 10, 5, 300
IDLE_S = 10.0
"""Long enough for an agent to make the next sandbox ready."""
# As a server has them by default; the tests' own are quicker.
USUAL = {"GRIDX_LEASE_S": "60", "GRIDX_SWEEP_S": "10", "GRIDX_HEARTBEAT_S": "10", "GRIDX_POLL_S": "1"}

PROJECT = """
[project]
name = "breast-cancer"
version = "1.0.0"
dependencies = []
[tool.flwr.app]
publisher = "benchmark"
[tool.flwr.app.components]
serverapp = "breast_cancer.apps:server"
clientapp = "breast_cancer.apps:client"
[tool.flwr.app.config]
rounds = 5
"""
# torch comes from our own environment, behind everything of the peer's.
APPS = """
import runpy, sys
sys.path.append(SITE_PACKAGES)
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

example = runpy.run_path(EXAMPLE)
server = ServerApp()
client = ClientApp()

@server.main()
def serve(grid: Grid, context: Context) -> None:
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=MACHINES, min_available_nodes=MACHINES)
    first = ArrayRecord(example["build_model"]().state_dict())
    result = strategy.start(grid=grid, initial_arrays=first, num_rounds=context.run_config["rounds"])
    torch.save(result.arrays.to_torch_state_dict(), OUT)

@client.train()
def train(message: Message, context: Context) -> Message:
    model = example["build_model"]()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    features, labels = example["read_rows"](FOLDER + f"/chunk-{context.node_config['partition-id']}.csv")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = torch.nn.BCEWithLogitsLoss()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(features)).split(16):
            optimizer.zero_grad()
            loss_of(model(features[batch]), labels[batch]).backward()
            optimizer.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(features)})}
    return Message(content=RecordDict(content), reply_to=message)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--flower", metavar="PYTHON", default=str(FLOWER) if FLOWER.with_name("flwr").exists() else None)
    args = parser.parse_args()
    lines = breast_cancer().decode().splitlines(keepends=True)
    sandboxes = ["process", *(["docker"] if shutil.which("docker") and has_image(IMAGE) else [])]
    print(f"{args.rounds} rounds, {MACHINES} machines, submission to end; median of {args.jobs} jobs\n")
    print(f"{'':44} {'cold':>8} {'warm':>8} {'a round':>8}   seconds")
    overheads: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        for sandbox in sandboxes:
            cold, warm, alone = ours(Path(name) / sandbox, sandbox, lines, args.rounds, args.jobs)
            row(f"ours, {sandbox} sandbox", whole(cold), whole(warm), statistics.median(map(between_rounds, warm)))
            overheads[sandbox] = [each for job in cold for each in added(job)[:MACHINES]], added(alone)[ALONE:]
        if args.flower:
            first, *later = peer(Path(name) / "flower", Path(args.flower).parent, lines, args.rounds, args.jobs + 1)
            row("peer: Flower's SuperLink and SuperNodes", first, statistics.median(later), None)
        else:
            print("peer: no environment with flwr here")
    print(f"\n{'added to a subtask, claim to accepted update':44} {'cold':>8} {'warm':>8} {'p95':>8}   ms, the script's own time taken off")
    for sandbox, (first, later) in overheads.items():
        p95 = statistics.quantiles(later, n=20)[-1]
        print(f"{sandbox + ' sandbox':44} {statistics.median(first) * 1e3:8.0f} {statistics.median(later) * 1e3:8.0f} {p95 * 1e3:8.0f}")


def ours(
    home: Path, sandbox: str, lines: Sequence[str], rounds: int, jobs: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Cold jobs, warm ones, and one of ten chunks and two rounds on one agent alone."""
    platform = Platform(home, settings=USUAL)
    try:
        platform.start()
        agents = [AgentProcess.start_new(platform, f"agent-{index}", sandbox) for index in range(MACHINES)]
        buyer = User.register(platform, "buyer@example.com", "buyer")
        train(buyer, lines, 1)  # the server's own first job
        cold: list[dict[str, Any]] = []
        warm: list[dict[str, Any]] = []
        for _ in range(jobs):
            time.sleep(IDLE_S)
            warm.append(train(buyer, lines, rounds))
            cold.append(train(buyer, lines, rounds))
        agents[1].kill()
        time.sleep(IDLE_S)
        return cold, warm, train(buyer, lines, 2, chunks=ALONE)
    finally:
        platform.close()


def train(buyer: User, lines: Sequence[str], rounds: int, chunks: int = MACHINES) -> dict[str, Any]:
    """A job as the API tells it, with the subtasks of all rounds."""
    hyperparameters = json.dumps({"epochs": EPOCHS})
    job_id = buyer.submit(EXAMPLE.read_text(), "".join(lines).encode(), chunks=chunks, rounds=rounds, hyperparameters=hyperparameters)
    job = buyer.ended(job_id, PATIENCE_S)
    assert job["status"] == "COMPLETED", job["reason"]
    for number in range(1, rounds):
        job["subtasks"] += buyer.call("GET", f"/jobs/{job_id}", params={"round": number}).json()["subtasks"]
    job["subtasks"].sort(key=lambda subtask: (subtask["round"], subtask["chunk"]))
    return job


def added(job: Mapping[str, Any]) -> list[float]:
    """Seconds from each subtask's claim to its accepted update, less those of its script, in the order of rounds."""
    at = {(event["new"], event["subtask_id"]): datetime.fromisoformat(event["at"]) for event in job["events"] if event["what"] == "subtask"}
    found: list[float] = []
    for subtask in job["subtasks"]:
        spent = at["COMPLETED", subtask["id"]] - at["RUNNING", subtask["id"]]
        found.append(spent.total_seconds() - subtask["attempts"][-1]["train_s"])
    return found


def between_rounds(job: Mapping[str, Any]) -> float:
    closed = [datetime.fromisoformat(each["closed_at"]) for each in job["round_list"]]
    return statistics.median((later - earlier).total_seconds() for earlier, later in itertools.pairwise(closed))


def peer(folder: Path, binaries: Path, lines: Sequence[str], rounds: int, runs: int) -> list[float]:
    """Seconds of each run from `flwr run` to its end."""
    app = folder / "app" / "breast_cancer"
    app.mkdir(parents=True)
    (app / "__init__.py").touch()
    port, *clients = (free_port() for _ in range(1 + MACHINES))
    values = {"SITE_PACKAGES": str(Path(torch.__file__).parent.parent), "EXAMPLE": str(EXAMPLE), "FOLDER": str(folder)}
    values |= {"OUT": str(folder / "model.pth"), "EPOCHS": EPOCHS, "MACHINES": MACHINES}
    code = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + APPS
    (app / "apps.py").write_text(code)
    (folder / "app" / "pyproject.toml").write_text(PROJECT)
    header, *rows = lines
    for index in range(MACHINES):
        (folder / f"chunk-{index}.csv").write_text(header + "".join(rows[index::MACHINES]))
    (folder / "config.toml").write_text(
        f'[superlink]\ndefault = "bench"\n[superlink.bench]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    switches = {"FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    switches |= {"FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1", "PATH": f"{binaries}:{os.environ['PATH']}"}
    environment = os.environ | switches
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        with (folder / f"{len(started)}-{name}.log").open("wb") as log:
            command = [str(binaries / name), "--insecure", *arguments]
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder))

    try:
        start("flower-superlink", "--disable-runtime-dependency-installation", "--port", str(port))
        until(lambda: listens(port), 60, "the SuperLink listens")
        for index, own in enumerate(clients):
            node = f"partition-id={index} num-partitions={MACHINES}"
            start("flower-supernode", "--superlink", f"127.0.0.1:{port}", "--port", str(own), "--node-config", node)
            until(lambda own=own: listens(own), 60, "the SuperNode listens")
        times: list[float] = []
        for _ in range(runs):
            out = folder / "model.pth"
            out.unlink(missing_ok=True)
            begun = time.perf_counter()
            command = [str(binaries / "flwr"), "run", str(folder / "app"), "bench", "--run-config", f"rounds={rounds}"]
            submitted = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert submitted.returncode == 0, submitted.stdout + submitted.stderr
            until(out.exists, PATIENCE_S, f"Flower's model; see {folder}")
            times.append(time.perf_counter() - begun)
        return times
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def row(name: str, cold: float, warm: float, a_round: float | None) -> None:
    each = f"{a_round:8.2f}" if a_round is not None else f"{'-':>8}"
    print(f"{name:44} {cold:8.2f} {warm:8.2f} {each}", flush=True)


def whole(jobs: Sequence[Mapping[str, Any]]) -> float:
    """Median seconds from submission to the end."""
    times = [datetime.fromisoformat(job["finished_at"]) - datetime.fromisoformat(job["created_at"]) for job in jobs]
    return statistics.median(spent.total_seconds() for spent in times)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
