"""Benign or malignant, in step: DistributedDataParallel averages the gradients of all machines after every batch.

Each rank reads its own data.csv. Ranks, addresses and ports come from the environment, as torchrun and Grid-X set them; without them
`python train.py` trains alone. Rank 0 writes model.pth.
"""

import csv
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import gridx_task  # lies in the sandbox
except ImportError:  # on its own
    gridx_task = None

LABEL = "benign"
OPTIONS = {"epochs": 5, "learning_rate": 0.05, "batch_size": 16, "checkpoint_every": 1}


def build_model(width: int) -> nn.Module:
    torch.manual_seed(0)  # the same first weights on every rank
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))


def read_rows(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (rows x 30, as they are) and labels (rows x 1; 1 = benign), in float64."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != LABEL]
    features = [[float(row[name]) for name in names] for row in rows]
    return torch.tensor(features, dtype=torch.float64), torch.tensor([[float(row[LABEL])] for row in rows])


def moments(features: torch.Tensor) -> torch.Tensor:
    """Count, sums and sums of squares: what added up over all ranks gives everybody the same normalisation."""
    return torch.stack([torch.full_like(features[0], len(features)), features.sum(0), features.pow(2).sum(0)])


def normalise(features: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    mean = total[1] / total[0]
    return ((features - mean) / (total[2] / total[0] - mean**2).sqrt()).float()


def batches(rows: int, steps: int, size: int, epoch: int) -> list[torch.Tensor]:
    """This epoch's batches as row numbers: as many on every rank, so that no rank waits for one that has no more rows."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(epoch))
    return list(order[: steps * size].split(size))


def largest_difference(model: nn.Module) -> float:
    """How far this rank's parameters are from rank 0's."""
    largest = 0.0
    for parameter in model.parameters():
        first = parameter.detach().clone()
        dist.broadcast(first, src=0)
        largest = max(largest, (parameter.detach() - first).abs().max().item())
    return largest


def train(path: str = "data.csv") -> None:
    options = OPTIONS | (gridx_task.hyperparameters() if gridx_task else {})
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo")
    features, labels = read_rows(path)
    total, fewest = moments(features), torch.tensor(len(features))
    dist.all_reduce(total)
    dist.all_reduce(fewest, op=dist.ReduceOp.MIN)
    features = normalise(features, total)
    steps, size = max(int(fewest) // int(options["batch_size"]), 1), int(options["batch_size"])

    model = DistributedDataParallel(build_model(features.shape[1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=options["learning_rate"], momentum=0.9)
    first_epoch = 1
    if gridx_task and (saved := gridx_task.load_checkpoint()):
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_epoch = saved["epoch"] + 1
    loss_of = nn.BCEWithLogitsLoss()
    for epoch in range(first_epoch, int(options["epochs"]) + 1):
        begun, sum_of_losses = time.perf_counter(), 0.0
        for batch in batches(len(features), steps, size, epoch):
            optimizer.zero_grad()
            loss = loss_of(model(features[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            sum_of_losses += loss.item()
        speed = steps * size / (time.perf_counter() - begun)
        with torch.no_grad():
            accuracy = ((model(features) > 0) == (labels > 0.5)).float().mean().item()
        print(f"rank {dist.get_rank()}, epoch {epoch}: loss {sum_of_losses / steps:.4f}, accuracy {accuracy:.3f}", flush=True)
        if gridx_task:
            gridx_task.report(epoch=epoch, loss=sum_of_losses / steps, accuracy=accuracy, step=epoch * steps, samples_per_s=speed)
            if epoch % int(options["checkpoint_every"]) == 0:
                gridx_task.save_checkpoint({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch})
    difference = largest_difference(model.module)
    print(f"rank {dist.get_rank()}: parameters differ from rank 0's by {difference:.1e}", flush=True)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "model.pth")
    dist.barrier()  # rank 0 holds the store that the others need until here


def train_alone(paths: list[str], options: dict[str, float] = OPTIONS) -> nn.Module:
    """One process over the same global batches: each step joins the batches that the ranks would have had."""
    chunks = [read_rows(path) for path in paths]
    total = torch.stack([moments(features) for features, _ in chunks]).sum(0)
    chunks = [(normalise(features, total), labels) for features, labels in chunks]
    size = int(options["batch_size"])
    steps = max(min(len(features) for features, _ in chunks) // size, 1)
    model = build_model(chunks[0][0].shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=options["learning_rate"], momentum=0.9)
    loss_of = nn.BCEWithLogitsLoss()
    for epoch in range(1, int(options["epochs"]) + 1):
        dealt = [batches(len(features), steps, size, epoch) for features, _ in chunks]
        for step in range(steps):
            parts = [(features[own[step]], labels[own[step]]) for (features, labels), own in zip(chunks, dealt, strict=True)]
            optimizer.zero_grad()
            loss_of(model(torch.cat([part for part, _ in parts])), torch.cat([part for _, part in parts])).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    train()
