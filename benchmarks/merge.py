"""Merging updates: ours against Flower's `aggregate` (or a NumPy average), with reading the bytes once as the limit.

    python benchmarks/merge.py [--updates 10] [--megabytes 100] [--repeat 3] [--flower PYTHON]

PYTHON is the interpreter of an environment in which `flwr` is installed; without it the peer is NumPy: load all,
average. The peers read the same tensors from .npz files.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gridx.aggregation.canonical import CanonicalWriter, plan
from gridx.aggregation.merge import merge
from gridx.aggregation.summary import TensorSpec

NUMPY_PEER = """
import functools, sys, time, numpy as np
start = time.perf_counter()
loaded = [(list(np.load(p).values()), 100 + i) for i, p in enumerate(sys.argv[2:])]
total = sum(n for _, n in loaded)
weighted = [[layer * n for layer in layers] for layers, n in loaded]
result = [functools.reduce(np.add, layers) / total for layers in zip(*weighted)]
np.savez(sys.argv[1], *result)
print(time.perf_counter() - start)
"""
FLOWER_PEER = """
import sys, time, numpy as np
from flwr.server.strategy.aggregate import aggregate
start = time.perf_counter()
result = aggregate([(list(np.load(p).values()), 100 + i) for i, p in enumerate(sys.argv[2:])])
np.savez(sys.argv[1], *result)
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--flower", metavar="PYTHON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        folder = Path(name)
        updates, arrays = make_updates(folder, args.updates, args.megabytes << 20)
        size = sum(path.stat().st_size for path in updates)
        read = best(lambda: read_all(updates), args.repeat)
        print(f"{args.updates} updates of {args.megabytes} MiB float32; best of {args.repeat}; files in the page cache\n")
        print(f"{'what':38} {'seconds':>8} {'MB/s':>8} {'x limit':>8} {'x ours':>8}")
        out = folder / "out.pth"
        equal = best(lambda: merge([(path, 100) for path in updates], None, out), args.repeat)
        ours = best(lambda: merge([(path, 100 + i) for i, path in enumerate(updates)], None, out), args.repeat)
        row("limit: read the bytes once", read, size, read, ours)
        row("ours: equal rows", equal, size, read, ours)
        row("ours: unequal rows", ours, size, read, ours)
        if args.flower:
            row("peer: Flower aggregate", peer(args.flower, FLOWER_PEER, folder, arrays), size, read, ours)
        else:
            row("peer: NumPy, load all and average", peer(sys.executable, NUMPY_PEER, folder, arrays), size, read, ours)


def make_updates(folder: Path, count: int, size: int) -> tuple[list[Path], list[Path]]:
    """Canonical files and .npz files of the same tensors: ten layers an update."""
    side = max(1, size // 40)
    specs = [TensorSpec(f"layer{i}.weight", "float32", (side,)) for i in range(10)]
    updates, arrays = [folder / f"{n}.pth" for n in range(count)], [folder / f"{n}.npz" for n in range(count)]
    for number in range(count):
        random = np.random.default_rng(number)
        layers = [random.standard_normal(side, dtype=np.float32) for _ in specs]
        with CanonicalWriter(updates[number], plan(specs)) as writer:
            for index, layer in enumerate(layers):
                writer.write(index, layer.data)
            writer.close()
        np.savez(arrays[number], *layers)
    return updates, arrays


def read_all(paths: list[Path]) -> None:
    block = bytearray(1 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            offset = 0
            while count := os.preadv(file.fileno(), [block], offset):
                offset += count


def peer(python: str, code: str, folder: Path, arrays: list[Path]) -> float:
    """Seconds a peer takes in a process of its own, its imports not counted."""
    command = [python, "-c", code, str(folder / "peer.npz"), *map(str, arrays)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def best(work: Callable[[], object], repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, seconds: float, size: int, limit: float, ours: float) -> None:
    print(f"{name:38} {seconds:8.3f} {size / seconds / 1e6:8.0f} {seconds / limit:8.1f} {seconds / ours:8.1f}", flush=True)


if __name__ == "__main__":
    main()
