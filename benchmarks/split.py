"""Splitting a CSV: ours against pandas (read, slice, write), with copying the file as the limit.

python benchmarks/split.py [--megabytes 200] [--chunks 5] [--repeat 3] [--no-pandas]
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gridx.datasets.csv_records import scan
from gridx.datasets.splitting import split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-pandas", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gridx-bench-") as name:
        folder = Path(name)
        source = folder / "upload.csv"
        make_csv(source, args.megabytes << 20)
        found = scan(source)
        size = source.stat().st_size
        copy = best(lambda: shutil.copyfile(source, folder / "copy.csv"), args.repeat)
        print(f"{size / 1e6:.0f} MB, {found.rows} rows, {args.chunks} chunks; best of {args.repeat}; hashes included in ours\n")
        print(f"{'what':34} {'seconds':>8} {'MB/s':>8} {'of copy':>8} {'x pandas':>9}")
        row("limit: copy the file", copy, size, copy, None)
        row("ours: scan", best(lambda: scan(source), args.repeat), size, copy, None)
        ours = {
            kind: best(lambda kind=kind: split(source, found, kind, args.chunks, 1, folder / kind), args.repeat)
            for kind in ("contiguous", "iid")
        }
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pandas = {
            kind: None if args.no_pandas else best(lambda kind=kind: by_pandas(source, kind, args.chunks, folder), 1) for kind in ours
        }
        for kind, seconds in ours.items():
            row(f"ours: split {kind}", seconds, size, copy, pandas[kind])
        for kind, seconds in pandas.items():
            if seconds is not None:
                row(f"peer: pandas {kind}", seconds, size, copy, None)
        print(f"\npeak memory before pandas was loaded: {peak:.0f} MB")


def make_csv(path: Path, size: int) -> None:
    """Rows of 15 numbers, some 100 bytes each."""
    random = np.random.default_rng(0)
    block = b"".join(",".join(f"{value:.4f}" for value in row).encode() + b"\n" for row in random.random((5000, 15)))
    with path.open("wb") as file:
        file.write(",".join(f"c{i}" for i in range(15)).encode() + b"\n")
        for _ in range(max(1, size // len(block))):
            file.write(block)


def by_pandas(source: Path, kind: str, chunks: int, folder: Path) -> None:
    import pandas as pd  # the peer, loaded only when asked for

    frame = pd.read_csv(source)
    if kind == "iid":
        frame = frame.sample(frac=1, random_state=1)
    for number, places in enumerate(np.array_split(np.arange(len(frame)), chunks)):
        frame.iloc[places].to_csv(folder / f"pandas-{number}.csv", index=False)


def best(work: Callable[[], object], repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, seconds: float, size: int, copy: float, peer: float | None) -> None:
    faster = f"{peer / seconds:9.1f}" if peer is not None else f"{'-':>9}"
    print(f"{name:34} {seconds:8.3f} {size / seconds / 1e6:8.0f} {copy / seconds:8.0%} {faster}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
