"""The script of every no-code job: `train.py --model mlp|cnn|logistic_regression|linear_regression --target COLUMN`.

It keeps to the training contract like any other script. What all chunks must agree on (classes, categories, scales) comes from
schema.json, the rest from the job's hyperparameters. Numbers are scaled, texts become one column for each category.
"""

import argparse
import math
from dataclasses import dataclass
from typing import Any

import gridx_task
import numpy as np
import pandas as pd
import torch
from torch import nn

MOST_CATEGORIES = 100
"""Text columns with more different values are left out: they are names, not features."""
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "leaky_relu": nn.LeakyReLU}


@dataclass(frozen=True)
class Layout:
    """How a row becomes numbers, the same on every machine. `numbers` are (shift, scale) by column, `texts` categories by column."""

    target: str
    numbers: dict[str, tuple[float, float]]
    texts: dict[str, list[str]]
    classes: list[Any] | None
    """None: the target is a number to be predicted, scaled by `scale`."""
    scale: tuple[float, float] = (0.0, 1.0)

    @property
    def width(self) -> int:
        return len(self.numbers) + sum(map(len, self.texts.values()))

    @property
    def outputs(self) -> int:
        return len(self.classes) if self.classes else 1


def layout_of(model: str, target: str) -> Layout:
    """Reads schema.json. Raises ValueError where the columns do not suit the model."""
    columns: dict[str, dict[str, Any]] = gridx_task.schema()["columns"]
    facts = columns.pop(target)
    numeric = {name: column for name, column in columns.items() if "mean" in column}
    texts = {name: column["categories"] for name, column in columns.items() if column["type"] == "text" and "categories" in column}
    texts = {name: values for name, values in texts.items() if len(values) <= MOST_CATEGORIES}
    is_picture = all(column["type"] == "integer" and column["min"] >= 0 and column["max"] <= 255 for column in numeric.values())
    numbers = {name: (0.0, 255.0) if is_picture else (column["mean"], column["std"] or 1.0) for name, column in numeric.items()}
    if not numbers and not texts:
        raise ValueError("no column is left to learn from: besides the target there are only empty columns and texts that hardly repeat")
    if model == "cnn" and (texts or math.isqrt(len(numbers)) ** 2 != len(numbers)):
        raise ValueError(
            f"a CNN needs square pictures, one pixel a column; here are {len(numbers)} columns of numbers, {len(texts)} of text"
        )
    if model == "linear_regression":
        if "mean" not in facts:
            raise ValueError(f"column {target!r} holds {facts['type']}; linear_regression predicts numbers")
        return Layout(target, numbers, texts, None, (facts["mean"], facts["std"] or 1.0))
    if "categories" not in facts or len(facts["categories"]) < 2:
        raise ValueError(f"column {target!r} holds no classes: it has one value, or more than 1000 different ones")
    return Layout(target, numbers, texts, facts["categories"])


def read_rows(path: str, delimiter: str, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (rows x width), and targets: class numbers (rows), or scaled numbers (rows x 1). Rows without a target are left out."""
    has_names = layout.classes is not None and isinstance(layout.classes[0], str)
    as_text = [*layout.texts, *([layout.target] if has_names else [])]
    frame = pd.read_csv(path, sep=delimiter, dtype=dict.fromkeys(as_text, str), encoding="utf-8-sig")
    frame = frame[frame[layout.target].notna()]
    if not len(frame):
        raise ValueError(f"none of these rows has a value in column {layout.target!r}")
    parts: list[Any] = []
    if layout.numbers:
        shift, scale = np.array(list(layout.numbers.values())).T
        scaled = (np.asarray(frame[list(layout.numbers)], dtype=np.float64) - shift) / scale
        parts.append(np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0))
    for name, categories in layout.texts.items():
        codes = pd.Categorical(frame[name], categories=categories).codes
        parts.append(np.eye(len(categories) + 1)[codes][:, :-1])  # a missing value has the code -1, and so the row without a one
    features = torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))
    if layout.classes is None:
        shift, scale = layout.scale
        return features, torch.from_numpy(((np.asarray(frame[[layout.target]], dtype=np.float64) - shift) / scale).astype(np.float32))
    return features, torch.from_numpy(pd.Categorical(frame[layout.target], categories=layout.classes).codes.astype(np.int64))


def build_model(model: str, layout: Layout, settings: dict[str, Any]) -> nn.Module:
    """Takes features (rows x width), gives scores of the classes or one scaled number (rows x outputs)."""
    if model in ("logistic_regression", "linear_regression"):
        return nn.Linear(layout.width, layout.outputs)
    activation = ACTIVATIONS[settings["activation"]]
    layers: list[nn.Module] = []
    width = layout.width
    if model == "cnn":
        side = math.isqrt(width)
        layers.append(nn.Unflatten(1, (1, side, side)))
        for before, after in ((1, 32), (32, 64)):
            layers += [nn.Conv2d(before, after, kernel_size=5, padding=2), activation(), nn.MaxPool2d(2)]
        layers.append(nn.Flatten())
        width = 64 * (side // 4) ** 2
    for neurons in settings["hidden_layers"]:
        layers += [nn.Linear(width, neurons), activation()]
        width = neurons
    return nn.Sequential(*layers, nn.Linear(width, layout.outputs))


def loss_of(scores: torch.Tensor, targets: torch.Tensor, layout: Layout) -> torch.Tensor:
    return nn.functional.mse_loss(scores, targets) if layout.classes is None else nn.functional.cross_entropy(scores, targets)


def figures(loss: float, right: int, rows: int, layout: Layout) -> dict[str, float]:
    """What is reported: loss and accuracy, or loss (of the scaled target) and the root mean square error in the target's unit."""
    if layout.classes is None:
        return {"loss": loss, "rmse": math.sqrt(loss) * layout.scale[1]}
    return {"loss": loss, "accuracy": right / rows}


def count_right(scores: torch.Tensor, targets: torch.Tensor, layout: Layout) -> int:
    return 0 if layout.classes is None else int((scores.argmax(dim=1) == targets).sum())


def train(model: nn.Module, features: torch.Tensor, targets: torch.Tensor, layout: Layout, settings: dict[str, Any]) -> None:
    """Adam over shuffled batches, a report after each epoch. With `local_steps` (diloco) so many batches, however many epochs that is."""
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])
    rows, steps, most_steps = len(features), 0, settings.get("local_steps", math.inf)
    batches = math.ceil(rows / settings["batch_size"])
    epochs = math.ceil(most_steps / batches) if "local_steps" in settings else settings["epochs"]
    for epoch in range(1, epochs + 1):
        total, right, seen = 0.0, 0, 0
        for number, places in enumerate(torch.randperm(rows).split(settings["batch_size"]), 1):
            scores = model(features[places])
            loss = loss_of(scores, targets[places], layout)
            if not math.isfinite(loss.item()):
                raise ArithmeticError(f"the loss became {loss.item()} in epoch {epoch}, batch {number}; try a smaller learning_rate")
            optimizer.zero_grad()
            (loss + gridx_task.proximal_term(model)).backward()
            optimizer.step()
            total += loss.item() * len(places)
            right += count_right(scores, targets[places], layout)
            seen += len(places)
            steps += 1
            if steps >= most_steps:
                break
        gridx_task.report(epoch=epoch, **figures(total / seen, right, seen, layout))


def evaluate(model_path: str, csv_path: str) -> dict[str, float]:
    """Metrics of a saved model on the rows of a file."""
    options = read_options()
    layout = layout_of(options.model, options.target)
    model = build_model(options.model, layout, gridx_task.hyperparameters())
    model.load_state_dict(torch.load(model_path, map_location="cpu", weights_only=True))
    features, targets = read_rows(csv_path, options.delimiter, layout)
    with torch.no_grad():
        scores = torch.cat([model(batch) for batch in features.split(1000)])
    return figures(loss_of(scores, targets, layout).item(), count_right(scores, targets, layout), len(targets), layout)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--delimiter", default=",")
    return parser.parse_args()


def main() -> None:
    options, settings = read_options(), gridx_task.hyperparameters()
    layout = layout_of(options.model, options.target)
    model = build_model(options.model, layout, settings)
    gridx_task.load_global_model(model)
    features, targets = read_rows("data.csv", options.delimiter, layout)
    train(model, features, targets, layout, settings)
    torch.save(model.state_dict(), "model.pth")


if __name__ == "__main__":
    main()
