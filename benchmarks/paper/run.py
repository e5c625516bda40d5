"""`make paper`: cells of the table in McMahan et al. 2017, "Communication-Efficient Learning of Deep Networks from Decentralized Data".

    python -m benchmarks.paper.run [--cell 2NN] [--folder var/paper]

MNIST, 100 clients with 600 rows each, ten of them in each round. Rows are dealt by gridx.datasets.splitting, models merged by
gridx.aggregation. Each round is kept: an interrupted run goes on where it was. The learning rates were tuned once, by `--tune`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from torch import nn

from benchmarks.paper import mnist
from benchmarks.paper.curve import Curve, crossing
from benchmarks.paper.federated import Federation, LocalTraining, as_rows, convolutional, deal, two_layers

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, PER_ROUND = 100, 10


@dataclass(frozen=True)
class Cell:
    name: str
    build: Callable[[], nn.Module]
    epochs: int
    batch: int
    learning_rate: float
    target: float
    paper_rounds: float
    seeds: tuple[int, ...]
    most_rounds: int


CELLS = [
    Cell("2NN, IID, E=1, B=10", two_layers, 1, 10, 0.1, 0.97, 87, (1, 2, 3), 200),
    Cell("CNN, IID, E=5, B=10", convolutional, 5, 10, 0.1, 0.99, 20, (1,), 60),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default="", help="only cells whose name begins so")
    parser.add_argument("--folder", type=Path, default=ROOT / "var" / "paper")
    parser.add_argument("--package", type=Path, default=ROOT / "var" / "peers" / "mnist")
    parser.add_argument("--tune", type=float, nargs="+", help="instead, a seed of its own with each of these learning rates")
    parser.add_argument("--rounds", type=int, help="with --tune: rounds of each")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        data = mnist.load(args.package, mnist.mirror_from_environment())
    except mnist.NoData as error:
        sys.exit(f"make paper: {error}")
    cells = [cell for cell in CELLS if cell.name.startswith(args.cell)]
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.tune:
        for cell in cells:
            for rate in args.tune:
                curve = run(cell, data, 100, rate, args.folder, args.rounds or cell.most_rounds)
                best, rounds = max(curve.accuracies), _rounds(curve, cell)
                print(f"{cell.name}, rate {rate:g}: best {best:.4f}, rounds to {cell.target:.0%}: {rounds}", flush=True)
        return
    print(f"{'':22} {'rate':>5} {'target':>7} {'rounds':>8} {'paper':>6} {'ours / paper':>13}   by seed")
    for cell in cells:
        curves = [run(cell, data, seed, cell.learning_rate, args.folder, cell.most_rounds) for seed in cell.seeds]
        found = [crossing(curve.accuracies, cell.target) for curve in curves]
        reached = [rounds for rounds in found if rounds is not None]
        ours = mean(reached) if len(reached) == len(found) else float("nan")
        verdict = "within 50 %" if abs(ours / cell.paper_rounds - 1) <= 0.5 else "further off than 50 %"
        seeds = ", ".join(_rounds(curve, cell) for curve in curves)
        pace = mean(curve.seconds / len(curve.accuracies) for curve in curves)
        print(
            f"{cell.name:22} {cell.learning_rate:5g} {cell.target:7.0%} {ours:8.1f} {cell.paper_rounds:6g} {ours / cell.paper_rounds:13.2f}"
            f"   {seeds}; {verdict}; {pace:.1f} s a round",
            flush=True,
        )


def run(cell: Cell, data: mnist.Mnist, seed: int, rate: float, folder: Path, most_rounds: int) -> Curve:
    """Rounds until the target is reached, at most so many; those of an earlier run are not repeated."""
    label = f"{cell.name.replace(', ', '-').replace('=', '')}-seed{seed}-rate{rate:g}"
    settings = {"cell": cell.name, "seed": seed, "rate": rate, "batch": cell.batch, "epochs": cell.epochs}
    curve = Curve.resume(folder / f"{label}.json", settings)
    if crossing(curve.accuracies, cell.target) is not None or len(curve.accuracies) >= most_rounds:
        return curve
    federation = Federation(folder / label, cell.build, seed)
    if not federation.go_on_from(curve.model):
        curve = Curve(curve.path, curve.settings)
        federation.start()
    clients = deal(data.train_pixels, data.train_digits, CLIENTS, seed, folder)
    test = as_rows(data.test_pixels, data.test_digits)
    training = LocalTraining(rate, cell.batch, cell.epochs)
    for number in range(len(curve.accuracies) + 1, most_rounds + 1):
        chosen = sorted(np.random.default_rng([seed, number]).choice(CLIENTS, PER_ROUND, replace=False).tolist())
        seconds = federation.round(number, clients, chosen, training)
        curve.add(federation.accuracy(test), seconds, federation.next_sha256)
        federation.accept()
        print(f"  {label}: round {number}, {curve.accuracies[-1]:.4f}, {seconds:.1f} s", file=sys.stderr, flush=True)
        if crossing(curve.accuracies, cell.target) is not None:
            break
    return curve


def _rounds(curve: Curve, cell: Cell) -> str:
    found = crossing(curve.accuracies, cell.target)
    return f"{found:.1f}" if found is not None else f"not in {len(curve.accuracies)}"


if __name__ == "__main__":
    main()
