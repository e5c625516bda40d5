"""Handwritten digits with the two-layer network of McMahan et al. (2017). Reads data.csv, writes model.pth.

Shows argparse (a job's `arguments` arrive as its command line) and `evaluate`, which scores each round's model on held-out rows.
"""

import argparse
import csv

import torch
from torch import nn

try:
    import gridx_task  # lies in the sandbox
except ImportError:  # on its own
    gridx_task = None


def build_model() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def read_rows(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels from 0 to 1 (rows x 784) and digits (rows)."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        next(reader)
        table = torch.tensor([[float(value) for value in row] for row in reader])
    return table[:, :784] / 255, table[:, 784].long()


def measure(model: nn.Module, pixels: torch.Tensor, digits: torch.Tensor) -> dict[str, float]:
    with torch.no_grad():
        scores = model(pixels)
        loss = nn.functional.cross_entropy(scores, digits).item()
        return {"loss": loss, "accuracy": (scores.argmax(dim=1) == digits).float().mean().item()}


def evaluate(model_path: str, csv_path: str) -> dict[str, float]:
    """Metrics of a saved model on rows that it was not trained on."""
    model = build_model()
    model.load_state_dict(torch.load(model_path, map_location="cpu", weights_only=True))
    return measure(model, *read_rows(csv_path))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv-path", default="data.csv")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    options = parser.parse_args()

    model = build_model()
    if gridx_task:
        gridx_task.load_global_model(model)
    pixels, digits = read_rows(options.csv_path)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate)
    for epoch in range(1, options.epochs + 1):
        for batch in torch.randperm(len(pixels)).split(options.batch_size):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(pixels[batch]), digits[batch]).backward()
            optimizer.step()
        metrics = measure(model, pixels, digits)
        print(f"epoch {epoch}: loss {metrics['loss']:.4f}, accuracy {metrics['accuracy']:.3f}")
        if gridx_task:
            gridx_task.report(epoch=epoch, **metrics)
    torch.save(model.state_dict(), "model.pth")


if __name__ == "__main__":
    main()
