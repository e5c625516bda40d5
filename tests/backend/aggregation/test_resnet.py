"""A model of the size of ResNet-18, with batch normalisation: uploaded, merged by each kind of strategy, and loaded strictly again."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gridx.aggregation.merge import merge
from gridx.aggregation.summary import UpdateCaps
from gridx.aggregation.update_file import inspect_update

PARAMETERS = 11_689_512  # of ResNet-18 with 1000 classes
ROWS = (3, 1, 2)


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        narrows = stride != 1 or inside != outside
        self.downsample = (
            nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)) if narrows else nn.Identity()
        )

    def forward(self, images: Tensor) -> Tensor:
        found = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(images)))))
        return torch.relu(found + self.downsample(images))


def resnet18() -> nn.Sequential:
    """Layers as in He et al. 2015, table 1."""
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *(Block(*each) for each in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


@pytest.fixture(scope="module")
def updates(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, dict[str, Tensor]]]:
    """What three machines upload after one to three batches each, as the server writes it, beside their state_dicts."""
    folder, found = tmp_path_factory.mktemp("resnet"), list[tuple[Path, dict[str, Tensor]]]()
    for seed in range(len(ROWS)):
        torch.manual_seed(seed)
        model = resnet18()
        assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS
        for _ in range(seed + 1):
            model(torch.randn(2, 3, 32, 32))
        torch.save(model.state_dict(), folder / f"{seed}.pth")
        inspect_update(folder / f"{seed}.pth", folder / f"{seed}-canonical.pth", UpdateCaps(max_bytes=10**9))
        found.append((folder / f"{seed}-canonical.pth", model.state_dict()))
    return found


@pytest.mark.parametrize("strategy", ["fedavg", "fedadam", "fedmedian", "krum"])
def test_round_trips_and_loads_strictly(tmp_path: Path, updates: list[tuple[Path, dict[str, Tensor]]], strategy: str) -> None:
    files = [(path, rows) for (path, _), rows in zip(updates, ROWS, strict=True)]
    options = {"f": 0} if strategy == "krum" else None
    merge(files, files[0][0], tmp_path / "model.pth", strategy, options, None, tmp_path / "state")
    merged = torch.load(tmp_path / "model.pth", weights_only=True)
    model = resnet18()
    model.load_state_dict(merged, strict=True)
    assert list(merged) == list(updates[0][1])
    assert all(merged[name].dtype == value.dtype and merged[name].shape == value.shape for name, value in updates[0][1].items())
    assert torch.isfinite(model.eval()(torch.randn(2, 3, 32, 32))).all()
    if strategy == "fedavg":
        for name, value in merged.items():
            if value.is_floating_point():
                states = [state[name].double() for _, state in updates]
                mean = sum(rows * state for rows, state in zip(ROWS, states, strict=True)) / sum(ROWS)
                torch.testing.assert_close(value.double(), mean, rtol=1e-6, atol=1e-8)
