"""Merging updates: ours against Flower's `aggregate`, with reading the bytes once as the limit.

    python benchmarks/merge.py [--updates 10] [--megabytes 100] [--repeat 3] [--flower PYTHON]

PYTHON is the interpreter of an environment in which `flwr` is installed (`make bench` makes one under var/peers); without one the peer is
that function, written down again. Both read the same files, the peer with torch.load, and write a model. Files lie in the page cache.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the server's own pool sets it; before NumPy reads it

import argparse
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gridx.aggregation.canonical import CanonicalWriter, plan, read_layout
from gridx.aggregation.merge import merge
from gridx.aggregation.precision import tree_sum
from gridx.aggregation.sources import Segment
from gridx.aggregation.summary import TensorSpec
from gridx.aggregation.walk import Workspace, in_order

FLOWER = Path(__file__).resolve().parent.parent / "var" / "peers" / "flower" / "bin" / "python"
OURS = """
import sys, time
from pathlib import Path
from gridx.aggregation.merge import merge
start = time.perf_counter()
merge([(Path(p), 100 + i) for i, p in enumerate(sys.argv[3:])], None, Path(sys.argv[1]))
print(time.perf_counter() - start, 0.0, *PEAK)
"""
# torch comes from our own environment, behind everything of the peer's: it only reads and writes the files.
PEER = """
import sys, time
AGGREGATE
sys.path.append(sys.argv[2])
import torch
start = time.perf_counter()
loaded = [torch.load(p, weights_only=True) for p in sys.argv[3:]]
results = [([tensor.numpy() for tensor in state.values()], 100 + i) for i, state in enumerate(loaded)]
names = list(loaded[0])
begun = time.perf_counter()
merged = aggregate(results)
in_memory = time.perf_counter() - begun
torch.save({name: torch.from_numpy(layer) for name, layer in zip(names, merged)}, sys.argv[1])
whole = time.perf_counter() - start
for _ in range(2):
    begun = time.perf_counter()
    aggregate(results)
    in_memory = min(in_memory, time.perf_counter() - begun)
print(whole, in_memory, *PEAK)
"""
FLOWERS_OWN = "from flwr.server.strategy.aggregate import aggregate"
WRITTEN_DOWN = """
import functools, numpy as np
def aggregate(results):
    total = sum(count for _, count in results)
    weighted = [[layer * count for layer in layers] for layers, count in results]
    return [functools.reduce(np.add, layers) / total for layers in zip(*weighted)]
"""


# Not getrusage: its peak includes that of the process that this one was forked from.
PEAK = 'next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))'


class Run(NamedTuple):
    """Seconds of a process from its start to its end, of its work alone, and of the arithmetic on arrays in memory; its peak in MB."""

    process: float
    work: float
    in_memory: float
    peak: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--flower", metavar="PYTHON", default=str(FLOWER) if FLOWER.exists() else None)
    args = parser.parse_args()
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        folder = Path(name)
        updates = make_updates(folder, max(args.updates, 32), args.megabytes << 20)
        used = updates[: args.updates]
        size = sum(path.stat().st_size for path in used)
        read = best(lambda: read_all(used), args.repeat)
        whole = best(lambda: [path.read_bytes() for path in used], args.repeat)
        warm = best(lambda: merge([(path, 100 + i) for i, path in enumerate(used)], None, folder / "out.pth"), args.repeat)
        equal = best(lambda: merge([(path, 100) for path in used], None, folder / "out.pth"), args.repeat)
        in_memory = best_in_memory([load(path) for path in used], args.repeat)
        ours = min(fresh(sys.executable, OURS, folder / "ours.pth", used) for _ in range(args.repeat))
        code = PEER.replace("AGGREGATE", FLOWERS_OWN if args.flower else WRITTEN_DOWN)
        peer = min(fresh(args.flower or sys.executable, code, folder / "peer.pth", used) for _ in range(args.repeat))
        who = "Flower" if args.flower else "Flower's aggregate, written down"
        print(f"{args.updates} updates of {args.megabytes} MiB float32, to a written model; best of {args.repeat}\n")
        print(f"{'what':52} {'seconds':>8} {'MB/s':>8} {'x reading':>10} {'peer / this':>12}")
        row("limit: read every byte once, block by block", read, size, read, None)
        row("limit: read every file whole, once", whole, size, read, None)
        row("ours, a fresh process from start to end", ours.process, size, read, peer.process)
        row("ours, its work alone", ours.work, size, read, peer.work)
        row("ours, warm process: files to a written model", warm, size, read, peer.in_memory)
        row("ours, warm process, all rows equal", equal, size, read, peer.in_memory)
        row("ours, arrays in memory, nothing written", in_memory, size, read, peer.in_memory)
        row(f"peer: {who}, a fresh process", peer.process, size, read, None)
        row(f"peer: {who}, its work alone", peer.work, size, read, None)
        row(f"peer: {who}, arrays in memory, nothing written", peer.in_memory, size, read, None)
        print(f"\n{'updates':>8} {'peak MB':>8} {'in models':>10}")
        for count in (4, 8, 32):
            peak = fresh(sys.executable, OURS, folder / "ours.pth", updates[:count]).peak
            print(f"{count:8} {peak:8.0f} {peak * 1e6 / updates[0].stat().st_size:10.2f}")
        print(f"peer, {args.updates}: {peer.peak:.0f} MB, {peer.peak * 1e6 / updates[0].stat().st_size:.2f} models")


def make_updates(folder: Path, count: int, size: int) -> list[Path]:
    """Canonical files of ten layers each. The bytes repeat after the tenth, which nobody's arithmetic can see."""
    side = max(1, size // 40)
    specs = [TensorSpec(f"layer{i}.weight", "float32", (side,)) for i in range(10)]
    updates = [folder / f"{n}.pth" for n in range(count)]
    for number, path in enumerate(updates):
        if number >= 10:
            os.link(updates[number % 10], path)
            continue
        random = np.random.default_rng(number)
        with CanonicalWriter(path, plan(specs)) as writer:
            for index in range(len(specs)):
                writer.write(index, random.standard_normal(side, dtype=np.float32).data)
            writer.close()
    return updates


def load(path: Path) -> list[NDArray[np.float32]]:
    data = np.fromfile(path, np.uint8)
    with path.open("rb") as file:
        layout = read_layout(file.fileno())
    places = zip(layout.specs, layout.offsets, strict=True)
    return [data[offset : offset + 4 * spec.numel].view(np.float32) for spec, offset in places]


def best_in_memory(updates: list[list[NDArray[np.float32]]], repeat: int) -> float:
    return best(lambda: mean_in_memory(updates), repeat)


def mean_in_memory(updates: list[list[NDArray[np.float32]]]) -> list[NDArray[np.float32]]:
    """What `merge` does to the numbers themselves, in the same windows, threads and order: their mean, weighted by rows, in float64."""
    specs = [TensorSpec(f"layer{number}", "float32", layer.shape) for number, layer in enumerate(updates[0])]
    rows = np.arange(100, 100 + len(updates), dtype=np.float64)
    means = [np.empty_like(layer) for layer in updates[0]]

    def work(window: list[Segment], space: Workspace) -> None:
        for segment in window:
            place = slice(segment.start, segment.start + segment.count)
            mean = space.mean[: segment.count]
            values = cast("NDArray[np.float32]", [layers[segment.tensor][place] for layers in updates])  # only ever indexed by row
            tree_sum(values, rows, mean, space.scratch[: segment.count])
            np.divide(mean, rows.sum(), out=means[segment.tensor][place], casting="same_kind")

    with ExitStack() as stack:
        deque(in_order(specs, len(updates), stack, work), maxlen=0)
    return means


def read_all(paths: list[Path]) -> None:
    block = bytearray(1 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            offset = 0
            while count := os.preadv(file.fileno(), [block], offset):
                offset += count


def fresh(python: str, code: str, out: Path, updates: list[Path]) -> Run:
    """Runs `code` in a process of its own."""
    command = [python, "-c", code.replace("*PEAK", PEAK), str(out), sysconfig.get_path("purelib"), *map(str, updates)]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    process = time.perf_counter() - start
    work, in_memory, peak = map(float, done.stdout.split()[-3:])
    return Run(process, work, in_memory, peak / 1e3)


def best(work: Callable[[], object], repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, seconds: float, size: int, limit: float, peer: float | None) -> None:
    ratio = f"{peer / seconds:12.1f}" if peer else f"{'-':>12}"
    print(f"{name:52} {seconds:8.3f} {size / seconds / 1e6:8.0f} {seconds / limit:10.1f} {ratio}", flush=True)


if __name__ == "__main__":
    main()
