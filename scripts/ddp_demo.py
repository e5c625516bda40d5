"""make ddp-demo: synchronous training without a platform, in one command: a master and four workers on this machine.

    python scripts/ddp_demo.py [--workers 4] [--port 50051] [--timeout 180]

The rows of the breast cancer example are dealt to the workers; each registers at the master, gets a rank, waits for the others and trains
examples/ddp_breast_cancer in step with them. At the end the weights are compared: between the ranks, and with one process that trained on
the same global batches. On a terminal the master shows its live dashboard. Everything lies under var/ddp-demo afterwards.
"""

import argparse
import csv
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

from local_platform import BIN, ROOT, Processes, Trouble, clean_environment, running

DEMO = ROOT / "var" / "ddp-demo"
EXAMPLE = ROOT / "examples" / "ddp_breast_cancer"
CLOSE_ENOUGH = 1e-5


def main() -> int:
    parser = argparse.ArgumentParser(description="Synchronous training on this machine: a master and its workers.")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--port", type=int, default=50051, help="of the master")
    parser.add_argument("--master-port", type=int, default=29500, help="of rank 0")
    parser.add_argument("--timeout", type=float, default=180, help="seconds that training may take")
    options = parser.parse_args()
    try:
        shutil.rmtree(DEMO, ignore_errors=True)
        with running(DEMO / "logs") as processes:
            return run(processes, options)
    except (Trouble, OSError, subprocess.SubprocessError) as trouble:
        print(f"\nThe demo failed: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(processes: Processes, options: argparse.Namespace) -> int:
    begun = time.monotonic()
    chunks = deal_rows(options.workers)
    watching = sys.stdout.isatty()
    master = [str(BIN / "gridx"), "orchestrator", "--standalone", "--world-size", str(options.workers), "--port", str(options.port)]
    master += ["--master-port", str(options.master_port), *(["--dashboard"] if watching else [])]
    environment = clean_environment()
    processes.start("master", master, env=environment, cwd=DEMO, to_terminal=watching)
    for number, chunk in enumerate(chunks):
        name = f"worker-{number}"
        join = ["-m", "gridx_worker.ddp", "--orchestrator", f"127.0.0.1:{options.port}", "--name", name, "--patience", "90"]
        command = [sys.executable, *join, "--", sys.executable, str(EXAMPLE / "train.py")]
        threads = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        processes.start(name, command, env=environment | threads, cwd=chunk.parent)
    codes = wait(processes, options.timeout)
    if any(codes.values()):
        failed = next(name for name, code in codes.items() if code)
        raise Trouble(f"{failed} ended with exit code {codes[failed]}\n{processes.tail(failed)}")
    between = largest_between_ranks(processes, options.workers)
    alone = largest_to_one_process(chunks)
    print(f"\n{options.workers} ranks trained in step in {time.monotonic() - begun:.0f} s")
    print(f"Largest difference between the ranks' parameters:      {between:.1e}")
    print(f"Largest difference to one process on the same batches: {alone:.1e}")
    print(f"Model: {find_model().relative_to(ROOT)}")
    if between or alone > CLOSE_ENOUGH:
        raise Trouble(f"the parameters should be the same on all ranks, and within {CLOSE_ENOUGH:g} of one process")
    return 0


def deal_rows(workers: int) -> list[Path]:
    """data.csv for each worker, in a folder of its own."""
    DEMO.mkdir(parents=True)
    whole = DEMO / "data.csv"
    maker = ROOT / "examples" / "breast_cancer" / "make_data.py"
    subprocess.run([sys.executable, str(maker), str(whole)], check=True, stdout=subprocess.DEVNULL, timeout=120)
    with whole.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    paths: list[Path] = []
    for number in range(workers):
        path = DEMO / f"chunk-{number}" / "data.csv"
        path.parent.mkdir()
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows[number::workers]])
        paths.append(path)
    return paths


def wait(processes: Processes, seconds: float) -> dict[str, int]:
    """Each process's exit code, the master's too; the first that fails ends the wait."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        codes = processes.codes()
        if None not in codes.values() or any(codes.values()):
            return {name: code or 0 for name, code in codes.items()}
        time.sleep(0.1)
    raise Trouble(f"training has not ended after {seconds:.0f} s; the logs lie in {(DEMO / 'logs').relative_to(ROOT)}")


def largest_between_ranks(processes: Processes, workers: int) -> float:
    found = [
        float(difference)
        for number in range(workers)
        for difference in re.findall(r"parameters differ from rank 0's by (\S+)", processes.log(f"worker-{number}").read_text())
    ]
    if len(found) != workers:
        raise Trouble(f"{len(found)} of {workers} ranks compared their parameters")
    return max(found)


def largest_to_one_process(chunks: list[Path]) -> float:
    """Ranks are given in the order of arrival; the global batches are the same whoever has which."""
    import torch  # takes seconds, so not before the workers are on their way

    example = runpy.run_path(str(EXAMPLE / "train.py"))
    expected = example["train_alone"]([str(path) for path in chunks]).state_dict()
    found = torch.load(find_model(), weights_only=True)
    return max(float((expected[name] - found[name]).abs().max()) for name in expected)


def find_model() -> Path:
    models = list(DEMO.glob("chunk-*/model.pth"))
    if len(models) != 1:
        raise Trouble(f"{len(models)} ranks wrote a model; rank 0 alone should")
    return models[0]


if __name__ == "__main__":
    sys.exit(main())
