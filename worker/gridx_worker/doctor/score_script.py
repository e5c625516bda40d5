"""Runs inside the sandbox in the place of a job's script: a small training that is the same everywhere, and how fast it went.

Prints `SCORE {json}` with the samples per second of the best of three runs of a two-layer network on 64 columns, in batches of 64.
"""

import json
import time

import torch

BATCH, COLUMNS, HIDDEN, CLASSES = 64, 64, 256, 10
STEPS, RUNS = 300, 3


def main() -> None:
    torch.manual_seed(0)
    rows, labels = torch.randn(BATCH, COLUMNS), torch.randint(CLASSES, (BATCH,))
    layers = (
        torch.nn.Linear(COLUMNS, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, CLASSES),
    )
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()

    def train(steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(rows), labels).backward()
            optimizer.step()
        return time.perf_counter() - started

    train(20)  # what the first steps set up is no training
    seconds = min(train(STEPS) for _ in range(RUNS))
    print("SCORE", json.dumps({"samples_per_s": STEPS * BATCH / seconds}), flush=True)
    torch.save(model.state_dict(), "model.pth")


main()
