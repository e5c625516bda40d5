"""Reads a stranger's `.pth` and writes our canonical file of it. Runs in a limited child only, see `safe_load`.

`weights_only=True` stops code, not harm: tensors of 2^40 elements with stride 0, invalid sparse tensors, flipped bits
and tensors larger than their storage all load. Every check here answers one of those.
"""

import warnings
from pathlib import Path
from typing import Any, Final, cast

import torch
from torch import Tensor

from gridx.aggregation.archive import SAVE_STATE_DICT, check_archive
from gridx.aggregation.canonical import CanonicalWriter, plan
from gridx.aggregation.summary import ITEM_BYTES, TensorSpec, UpdateCaps, UpdateRefused, UpdateSummary

_DTYPES: Final = {getattr(torch, name): name for name in ITEM_BYTES}
_BLOCK_ELEMENTS = 1 << 18
_CHECKPOINT_KEYS = ("state_dict", "model_state_dict", "model", "net", "weights", "params")


def inspect_update(source: Path, canonical: Path, caps: UpdateCaps) -> UpdateSummary:
    """Checks the upload at `source` and writes it to `canonical` (whole or not at all); the summary of what it wrote.

    Raises UpdateRefused. Tied tensors get a storage each; key order is kept; views become contiguous.
    """
    archive = check_archive(source, caps)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded: Any = torch.load(source, map_location="cpu", weights_only=True, mmap=False)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        if "allocate memory" in str(error):
            raise MemoryError from None
        words = " ".join(str(error).split())[:200]
        raise UpdateRefused("unreadable", f"torch.load can not read model.pth: {words}") from None
    tensors = _check_shape_of_dict(loaded, caps)
    specs = [_check_tensor(name, tensor) for name, tensor in tensors.items()]
    total = sum(spec.nbytes for spec in specs)
    if total > caps.max_bytes:
        raise UpdateRefused("too_large", f"the tensors take {total} bytes; at most {caps.max_bytes} are accepted")
    if archive.storage_bytes == 0 and total:
        raise UpdateRefused("bad_tensor", "model.pth's tensors have no data")
    for name, tensor in tensors.items():
        _check_finite(name, tensor)
    try:
        layout = plan(specs)
    except ValueError as error:
        raise UpdateRefused("too_large", str(error)) from None
    with CanonicalWriter(canonical, layout) as writer:
        for index, tensor in enumerate(tensors.values()):
            _write(writer, index, tensor)
        sha256, size = writer.close()
    return UpdateSummary.of(sha256, size, specs)


def _check_shape_of_dict(loaded: Any, caps: UpdateCaps) -> dict[str, Tensor]:
    """The flat dict of str -> Tensor that `loaded` must be."""
    if not isinstance(loaded, dict):
        raise UpdateRefused("no_state_dict", f"model.pth holds one {type(loaded).__name__}; {SAVE_STATE_DICT}")
    entries = cast("dict[Any, Any]", loaded)
    if not entries:
        raise UpdateRefused("no_tensors", f"model.pth holds an empty dict; {SAVE_STATE_DICT}")
    for key in _CHECKPOINT_KEYS:
        if isinstance(entries.get(key), dict):
            raise UpdateRefused(
                "checkpoint",
                f"model.pth holds a checkpoint dict whose weights lie under {key!r}; {SAVE_STATE_DICT}, or"
                f" torch.save(checkpoint[{key!r}], 'model.pth')",
            )
    if len(entries) > caps.max_tensors:
        raise UpdateRefused("too_many_tensors", f"model.pth has {len(entries)} tensors; {caps.max_tensors} are accepted")
    for key, value in entries.items():
        if not isinstance(key, str) or not 0 < len(key) <= caps.max_name_length or not key.isprintable():
            raise UpdateRefused("bad_name", f"model.pth has the key {key!a:.80}; keys are short printable strings")
        if isinstance(value, dict):
            raise UpdateRefused("nested", f"model.pth has a dict under {key!r}; a state_dict is flat: {SAVE_STATE_DICT}")
        if not isinstance(value, Tensor):
            raise UpdateRefused(
                "not_a_tensor", f"model.pth has a {type(value).__name__} under {key!r}; only tensors are merged: {SAVE_STATE_DICT}"
            )
    return cast("dict[str, Tensor]", entries)


def _check_tensor(name: str, tensor: Tensor) -> TensorSpec:
    if tensor.layout != torch.strided:
        raise UpdateRefused("sparse_tensor", f"{name!r} is a sparse tensor; save it dense: tensor.to_dense()")
    if tensor.is_quantized:
        raise UpdateRefused("quantized_tensor", f"{name!r} is quantized; save the model before quantizing it")
    if tensor.is_complex():
        raise UpdateRefused("complex_tensor", f"{name!r} is complex; save real and imaginary parts as two tensors")
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise UpdateRefused("bad_dtype", f"{name!r} has dtype {kind}; accepted are {', '.join(ITEM_BYTES)}")
    if tensor.device.type != "cpu":
        raise UpdateRefused("bad_tensor", f"{name!r} lies on {tensor.device}; save tensors with data")
    storage = tensor.untyped_storage().nbytes()
    if tensor.numel() * tensor.element_size() > storage:
        raise UpdateRefused(
            "bad_tensor",
            f"{name!r} claims {tensor.numel()} elements and has {storage} bytes of data; save tensor.clone() of expanded tensors",
        )
    return TensorSpec(name=name, dtype=dtype, shape=tuple(tensor.shape))


def _check_finite(name: str, tensor: Tensor) -> None:
    if not tensor.is_floating_point():
        return
    bad = 0
    for block in _blocks(tensor):
        # A float64 sum of narrower floats can not overflow, so that it tells; float64's own may, then count.
        if not bool(torch.isfinite(block.sum(dtype=torch.float64))):
            bad += int((~torch.isfinite(block)).sum())
    if bad:
        raise UpdateRefused(
            "not_finite",
            f"layer {name!r} holds {bad} of {tensor.numel()} values that are NaN or infinite; training diverged: lower"
            " the learning rate or clip gradients",
        )


def _write(writer: CanonicalWriter, index: int, tensor: Tensor) -> None:
    for block in _blocks(tensor):
        if block.dtype == torch.bool:
            block = block.view(torch.uint8) != 0  # a stranger's bool may hold any byte
        writer.write(index, block.view(torch.uint8).numpy().data)


def _blocks(tensor: Tensor) -> tuple[Tensor, ...]:
    """The elements in row-major order in one-dimensional contiguous pieces of bounded size."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.split(_BLOCK_ELEMENTS) if flat.numel() else ()
