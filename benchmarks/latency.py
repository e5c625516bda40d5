"""How long a trivial job takes from submission to its end, and where the time goes.

    python benchmarks/latency.py [--chunks 5] [--agents 2] [--jobs 3] [--sandbox process]

A server and agents of its own on loopback, as `make up` starts them. The first job warms the machine and is not counted. The script
imports torch and saves two numbers: what is left is the platform, and Python's own start.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.e2e.platform import AgentProcess, Platform, User

SCRIPT = "import torch\ntorch.save({'w': torch.ones(2)}, 'model.pth')\n"
CSV = b"x,y\n" + b"".join(b"%d,1\n" % n for n in range(50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=5)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--sandbox", choices=["process", "docker"], default="process")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        platform = Platform(Path(name) / "home")
        try:
            platform.start()
            for index in range(args.agents):
                AgentProcess.start_new(platform, f"agent-{index}", args.sandbox)
            buyer = User.register(platform, "buyer@example.com", "buyer")
            runs = [measure(buyer, args.chunks) for _ in range(args.jobs + 1)][1:]
        finally:
            platform.close()
    print(f"{args.chunks} chunks, {args.agents} agents, {args.sandbox} sandbox, warm; median of {args.jobs} jobs\n")
    print(f"{'from submission to the end':44} {statistics.median(run['total'] for run in runs) * 1000:9.0f} ms\n")
    for name in runs[0]:
        if name != "total":
            values = [run[name] for run in runs]
            print(f"  {name:42} {statistics.median(values) * 1000:9.0f} ms")


def measure(buyer: User, chunks: int) -> Mapping[str, float]:
    """Seconds of each stage of one job, from the server's own timeline."""
    job = buyer.ended(buyer.submit(SCRIPT, CSV, chunks=chunks), 300)
    assert job["status"] == "COMPLETED", job["reason"]
    events = job["events"]
    at = {(event["what"], event["new"], event["subtask_id"]): _time(event["at"]) for event in events}
    attempts = {subtask["id"]: subtask["attempts"][-1] for subtask in job["subtasks"]}
    begun, ready = at["job", "PROCESSING", None], at["job", "RUNNING", None]
    claimed = {key: at["subtask", "RUNNING", key] for key in attempts}
    uploaded = {key: at["subtask", "VERIFYING", key] for key in attempts}
    verified = {key: at["subtask", "COMPLETED", key] for key in attempts}
    spent = {key: (uploaded[key] - claimed[key]).total_seconds() for key in attempts}
    scripts = {key: attempt["train_s"] for key, attempt in attempts.items()}
    end = at["job", "COMPLETED", None]
    return {
        "total": (end - begun).total_seconds(),
        "rows dealt to chunks": (ready - begun).total_seconds(),
        "work exists -> first agent has it": (min(claimed.values()) - ready).total_seconds(),
        "the script, Python's start included (mean)": statistics.mean(scripts.values()),
        "the agent's part around it (mean)": statistics.mean(spent[key] - scripts[key] for key in attempts),
        "upload -> verified and paid (mean)": statistics.mean((verified[key] - uploaded[key]).total_seconds() for key in attempts),
        "last update verified -> merged, job ended": (end - max(verified.values())).total_seconds(),
    }


def _time(text: Any) -> datetime:
    return datetime.fromisoformat(text)


if __name__ == "__main__":
    main()
