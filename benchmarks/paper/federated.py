"""Federated training in one process: rows dealt and models merged by the product's own code, clients trained by plain PyTorch."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gridx.aggregation.merge import merge
from gridx.aggregation.summary import UpdateCaps
from gridx.aggregation.update_file import inspect_update
from gridx.datasets.csv_records import scan
from gridx.datasets.splitting import split

Rows = tuple[Tensor, Tensor]
"""Pixels from 0 to 1, shape (n, 784), and digits, shape (n,)."""


def as_rows(pixels: NDArray[np.uint8], digits: NDArray[np.uint8]) -> Rows:
    return torch.from_numpy(pixels.astype(np.float32) / 255), torch.from_numpy(digits.astype(np.int64))


def deal(pixels: NDArray[np.uint8], digits: NDArray[np.uint8], clients: int, seed: int, folder: Path) -> list[Rows]:
    """Each client's rows, as the product's split deals a CSV of them at random and equally."""
    with TemporaryDirectory(dir=folder) as name:
        source = Path(name) / "data.csv"
        table = np.column_stack([pixels, digits])
        names = [f"p{index}" for index in range(pixels.shape[1])]
        with source.open("wb") as file:
            file.write(",".join([*names, "label"]).encode() + b"\n")
            for row in table:
                file.write(b",".join(_NUMBERS[value] for value in row) + b"\n")
        done = split(source, scan(source), "iid", clients, seed, Path(name) / "chunks")
        return [_read(chunk.path) for chunk in done.chunks]


@dataclass(frozen=True)
class LocalTraining:
    """What a client does with its rows: epochs of minibatches, or `steps` of them where that is given."""

    learning_rate: float
    batch: int
    epochs: int = 1
    steps: int | None = None

    def run(self, model: nn.Module, rows: Rows, seed: Sequence[int]) -> None:
        pixels, digits = rows
        order = torch.Generator().manual_seed(int(np.random.SeedSequence(list(seed)).generate_state(1)[0]))
        optimizer = torch.optim.SGD(model.parameters(), lr=self.learning_rate)
        left = self.steps if self.steps is not None else self.epochs * -(-len(digits) // self.batch)
        model.train()
        while left > 0:
            for batch in torch.randperm(len(digits), generator=order).split(self.batch)[:left]:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(pixels[batch]), digits[batch]).backward()
                optimizer.step()
                left -= 1


class Federation:
    """A global model in a canonical file, and rounds of it."""

    def __init__(
        self, folder: Path, build: Callable[[], nn.Module], seed: int, strategy: str = "fedavg", options: dict[str, float] | None = None
    ) -> None:
        self.folder, self.seed, self.strategy, self.options = folder, seed, strategy, options or {}
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.state = folder / "global.pth", folder / "state.pth"
        self.next, self.next_state = folder / "next.pth", folder / "next-state.pth"
        torch.manual_seed(seed)
        self.model = build()

    def start(self) -> None:
        """Write the model as it was built."""
        for path in (self.state, self.next, self.next_state):
            path.unlink(missing_ok=True)
        self._write(self.path)

    def go_on_from(self, sha256: str | None) -> bool:
        """Whether the model with this hash is there: that of the last round that was noted. A round's end may have come just after it."""
        if sha256 is not None and _hash(self.next) == sha256:
            self.accept()
        return sha256 is not None and _hash(self.path) == sha256

    def accept(self) -> str:
        """The last round's model becomes the global one. Returns its SHA-256."""
        if self.next_state.is_file():
            os.replace(self.next_state, self.state)
        os.replace(self.next, self.path)
        return _hash(self.path)

    def round(self, number: int, clients: Sequence[Rows], chosen: Sequence[int], training: LocalTraining) -> float:
        """One round with the chosen clients, whose result waits for `accept`. Returns how many seconds it took."""
        begun = time.perf_counter()
        updates: list[tuple[Path, int]] = []
        for client in chosen:
            self.load(self.path)
            training.run(self.model, clients[client], (self.seed, number, client))
            path = self.folder / f"update-{client}.pth"
            self._write(path)
            updates.append((path, len(clients[client][1])))
        state_in = self.state if self.state.is_file() else None
        merge(updates, self.path, self.next, self.strategy, self.options, state_in, self.next_state)
        for path, _ in updates:
            path.unlink()
        return time.perf_counter() - begun

    def accuracy(self, rows: Rows) -> float:
        """Of the last round's model."""
        self.load(self.next if self.next.is_file() else self.path)
        self.model.eval()
        with torch.no_grad():
            right = [
                (self.model(pixels).argmax(1) == digits).sum().item()
                for pixels, digits in zip(rows[0].split(500), rows[1].split(500), strict=True)
            ]
        return sum(right) / len(rows[1])

    def load(self, path: Path) -> None:
        self.model.load_state_dict(torch.load(path, weights_only=True))

    @property
    def next_sha256(self) -> str:
        return _hash(self.next)

    def _write(self, path: Path) -> None:
        upload = path.with_suffix(".upload")
        torch.save(self.model.state_dict(), upload)
        inspect_update(upload, path, UpdateCaps())
        upload.unlink()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


_NUMBERS = [b"%d" % value for value in range(256)]


def _read(path: Path) -> Rows:
    lines = path.read_bytes().splitlines()[1:]
    table = np.array([np.fromstring(line, np.uint8, sep=",") for line in lines])
    return as_rows(table[:, :-1], table[:, -1])


def two_layers() -> nn.Module:
    """The paper's 2NN: 199,210 parameters."""
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def convolutional() -> nn.Module:
    """The paper's CNN: 1,663,370 parameters."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        *(nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Linear(512, 10)),
    )
