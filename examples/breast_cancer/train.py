"""Benign or malignant, from thirty measurements of cell nuclei: a small network that many machines train together.

Reads data.csv, writes model.pth. On Grid-X it starts each round from the global model; on its own, `python train.py` just trains.
"""

import csv

import torch
from torch import nn

try:
    import gridx_task  # lies in the sandbox
except ImportError:  # on its own
    gridx_task = None

LABEL = "benign"

# Column, mean, standard deviation. Fixed here, because every machine sees other rows: were each to compute its own,
# the same weight would mean something else on each of them.
COLUMNS = [
    ("mean_radius", 14.09, 3.486),
    ("mean_texture", 19.26, 4.31),
    ("mean_perimeter", 91.73, 24),
    ("mean_area", 650.8, 343.7),
    ("mean_smoothness", 0.09625, 0.01426),
    ("mean_compactness", 0.1042, 0.05278),
    ("mean_concavity", 0.08846, 0.07904),
    ("mean_concave_points", 0.04857, 0.03828),
    ("mean_symmetry", 0.1809, 0.02821),
    ("mean_fractal_dimension", 0.06292, 0.007131),
    ("radius_error", 0.3979, 0.2673),
    ("texture_error", 1.212, 0.5539),
    ("perimeter_error", 2.814, 1.964),
    ("area_error", 39.14, 41.54),
    ("smoothness_error", 0.007027, 0.002961),
    ("compactness_error", 0.02545, 0.01841),
    ("concavity_error", 0.03199, 0.03183),
    ("concave_points_error", 0.01175, 0.006274),
    ("symmetry_error", 0.02057, 0.008295),
    ("fractal_dimension_error", 0.003828, 0.00278),
    ("worst_radius", 16.22, 4.785),
    ("worst_texture", 25.63, 6.175),
    ("worst_perimeter", 106.9, 33.13),
    ("worst_area", 874.2, 553.8),
    ("worst_smoothness", 0.1324, 0.02307),
    ("worst_compactness", 0.254, 0.1554),
    ("worst_concavity", 0.2716, 0.2072),
    ("worst_concave_points", 0.1141, 0.06515),
    ("worst_symmetry", 0.2907, 0.06405),
    ("worst_fractal_dimension", 0.08412, 0.01765),
]


def build_model() -> nn.Module:
    return nn.Sequential(nn.Linear(len(COLUMNS), 16), nn.ReLU(), nn.Linear(16, 1))


def read_rows(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (rows x 30, normalised) and labels (rows x 1; 1 = benign)."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    features = [[(float(row[name]) - mean) / deviation for name, mean, deviation in COLUMNS] for row in rows]
    return torch.tensor(features), torch.tensor([[float(row[LABEL])] for row in rows])


def share_right(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return ((model(features) > 0) == (labels > 0.5)).float().mean().item()


def evaluate(model_path: str, csv_path: str) -> dict[str, float]:
    """How good a saved model is on rows that it was not trained on: Grid-X asks after each round of a job with held-out rows."""
    model = build_model()
    model.load_state_dict(torch.load(model_path, weights_only=True))
    features, labels = read_rows(csv_path)
    with torch.no_grad():
        loss = nn.functional.binary_cross_entropy_with_logits(model(features), labels).item()
    return {"loss": loss, "accuracy": share_right(model, features, labels)}


def train(path: str = "data.csv") -> None:
    options = {"epochs": 5, "learning_rate": 0.03, "batch_size": 16}
    model = build_model()
    if gridx_task:
        options |= gridx_task.hyperparameters()
        gridx_task.load_global_model(model)
    features, labels = read_rows(path)
    optimizer = torch.optim.SGD(model.parameters(), lr=options["learning_rate"])
    loss_of = nn.BCEWithLogitsLoss()
    for epoch in range(1, int(options["epochs"]) + 1):
        total = 0.0
        for batch in torch.randperm(len(features)).split(options["batch_size"]):
            optimizer.zero_grad()
            loss = loss_of(model(features[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        mean_loss, accuracy = total / len(features), share_right(model, features, labels)
        print(f"epoch {epoch}: loss {mean_loss:.4f}, accuracy {accuracy:.3f}")
        if gridx_task:
            gridx_task.report(epoch=epoch, loss=mean_loss, accuracy=accuracy)
    torch.save(model.state_dict(), "model.pth")


if __name__ == "__main__":
    train()
