"""Helper for training scripts: `import gridx_task`. A script that does not use it runs just as well.

model = Net()
gridx_task.load_global_model(model)
for epoch in range(epochs):
    ...
    gridx_task.report(epoch=epoch + 1, loss=loss, accuracy=accuracy)
torch.save(model.state_dict(), "model.pth")
"""

import contextlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

GLOBAL_MODEL = Path("global_model.pth")
SCHEMA = Path("schema.json")
OUTPUT = Path("model.pth")
CHECKPOINT = Path("checkpoint.pth")
SKELETON = "skeleton"
KEPT_CHECKPOINTS = 2
MAX_EXTRA_METRICS = 32

_folder = Path.cwd()
_reference: dict[str, dict[str, Any]] = {}
_sealed: list[Path] = []
_count = 0


def hyperparameters() -> dict[str, Any]:
    """The job's hyperparameters, as the buyer gave them; empty when there are none."""
    return json.loads(os.environ.get("GRIDX_HYPERPARAMETERS") or "{}")


def schema() -> dict[str, Any]:
    """What is known of every column over the whole dataset (not just this chunk): type, missing, mean, std, min, max or categories.

    Empty outside Grid-X. Fit encoders and scalers on this: fitted on a chunk, each machine's model would mean something else.
    """
    path = _folder / SCHEMA
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def load_global_model(model: Any) -> bool:
    """Loads the global model's weights into `model`, in place. False when there is none, as in round 1 of most jobs."""
    weights = _global_weights()
    if weights is None:
        return False
    model.load_state_dict(weights)
    return True


def report(*, epoch: int | None = None, loss: Any = None, accuracy: Any = None, **more: Any) -> None:
    """Shows this epoch's numbers on the job's page. Takes floats, NumPy scalars or one-element tensors.

    Numbers that are not finite are shown as missing. Never raises over a value it cannot read: reporting must not end a training run.
    """
    values = {name: _number(value) for name, value in list(more.items())[:MAX_EXTRA_METRICS]}
    emit(
        {
            "event": "report",
            "epoch": None if (at := _number(epoch)) is None else max(int(at), 0),
            "loss": _number(loss),
            "accuracy": _number(accuracy),
            "more": {name: value for name, value in values.items() if value is not None},
        }
    )


def proximal_term(model: Any, mu: float | None = None) -> Any:
    """mu/2 * squared L2 distance of the trainable parameters to the global model (FedProx, Li et al. 2020), a 0-d tensor with gradient.

    Add it to the loss. `mu` defaults to hyperparameters()["mu"], else 0. Zero when there is no global model.
    """
    import torch

    strength = float(hyperparameters().get("mu", 0.0) if mu is None else mu)
    parameters = {name: value for name, value in model.named_parameters() if value.requires_grad}
    device = next((value.device for value in parameters.values()), None)
    term = torch.zeros((), device=device)
    weights = _global_weights()
    if strength == 0.0 or weights is None:
        return term
    for name, value in parameters.items():
        if name in weights:
            term = term + (value - weights[name].to(value.device, value.dtype)).pow(2).sum()
    return strength / 2 * term


def save_checkpoint(state: Any) -> None:
    """Saves `state` whole or not at all: a run that is cut short never leaves half a file.

    In synchronous training `state` may hold tensors, numbers and texts in dicts, lists and tuples, such as the state_dicts of a model and
    an optimiser; rank 0's is sealed and kept by the server, and `load_checkpoint` finds it when training has to start again. The other
    ranks' calls do nothing. Otherwise `state` is a model or its state_dict, and becomes model.pth.
    """
    import torch

    weights = state.state_dict() if hasattr(state, "state_dict") else state
    if os.environ.get("GRIDX_MODE") == "ddp":
        if os.environ.get("RANK", "0") == "0":
            _seal(weights)
        return
    partial = _folder / (OUTPUT.name + ".partial")
    torch.save(weights, partial)
    partial.replace(_folder / OUTPUT)


def load_checkpoint() -> Any:
    """What `save_checkpoint` was last given, on any rank, when synchronous training starts again; None at the first start."""
    path = _folder / CHECKPOINT
    if not path.exists():
        return None
    import torch

    tensors = torch.load(path, map_location="cpu", weights_only=True)
    return _rebuild(json.loads(bytes(tensors.pop(SKELETON).tolist())), tensors)


def emit(event: dict[str, Any]) -> None:
    """For the launcher. One marked line on standard output; the mark is new for each attempt, so that no print is taken for a report."""
    mark = os.environ.get("GRIDX_MARK")
    if not mark:
        return
    with contextlib.suppress(OSError, ValueError):  # a script may have closed its own output
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(1, f"\x1e{mark} {json.dumps(event, allow_nan=False)}\n".encode())


def _global_weights() -> dict[str, Any] | None:
    """The global model's state_dict, read once; None when there is none."""
    path = _folder / GLOBAL_MODEL
    if str(path) not in _reference and path.exists():
        import torch

        _reference[str(path)] = torch.load(path, map_location="cpu", weights_only=True)
    return _reference.get(str(path))


def _seal(state: Any) -> None:
    """Writes a checkpoint as a flat dict of tensors, which the server can check, and tells the agent of it. The last two files stay."""
    import torch

    global _count  # noqa: PLW0603 - a script has one helper
    tensors: dict[str, Any] = {}
    skeleton = json.dumps(_take_apart(state, tensors)).encode()
    tensors[SKELETON] = torch.tensor(list(skeleton), dtype=torch.uint8)
    _count += 1
    path = _folder / f"checkpoint-{_count}.pth"
    partial = path.with_suffix(".partial")
    torch.save(tensors, partial)
    partial.replace(path)
    _sealed.append(path)
    while len(_sealed) > KEPT_CHECKPOINTS:
        _sealed.pop(0).unlink(missing_ok=True)
    emit({"event": "checkpoint", "number": _count})


def _take_apart(value: Any, tensors: dict[str, Any]) -> Any:
    """What stands between the tensors, as JSON. A tensor becomes its name in `tensors`."""
    import torch

    if isinstance(value, torch.Tensor):
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().to("cpu").contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_take_apart(key, tensors), _take_apart(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [_take_apart(item, tensors) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"a checkpoint holds tensors, numbers, texts, dicts, lists and tuples, no {type(value).__name__}")


def _rebuild(part: dict[str, Any], tensors: dict[str, Any]) -> Any:
    kind, inner = next(iter(part.items()))
    if kind == "tensor":
        return tensors[inner]
    if kind == "dict":
        return {_rebuild(key, tensors): _rebuild(item, tensors) for key, item in inner}
    if kind in ("list", "tuple"):
        items = [_rebuild(item, tensors) for item in inner]
        return tuple(items) if kind == "tuple" else items
    return inner


def _number(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if math.isfinite(number) else None
