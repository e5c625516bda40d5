"""Uploads that must be refused, made here byte by byte: (file name, expected code, maker)."""

import io
import os
import pickle
import struct
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

Maker = Callable[[Path], object]


def good_state() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return OrderedDict(
        [
            ("fc.weight", torch.randn(3, 4, generator=generator)),
            ("fc.bias", torch.randn(3, generator=generator)),
            ("bn.num_batches_tracked", torch.tensor(7)),
        ]
    )


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)


class Gadget:
    """Runs a command when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/gridx-gadget-ran",)


def saved(value: Any, **options: Any) -> Maker:
    return lambda path: torch.save(value, path, **options)


def rezipped(change: Callable[[str, bytes, zipfile.ZipFile], None], state: Any = None) -> Maker:
    """A good archive written again entry by entry; `change(name, content, target)` writes each."""

    def make(path: Path) -> None:
        buffer = io.BytesIO()
        torch.save(good_state() if state is None else state, buffer)
        with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
            for name in source.namelist():
                change(name, source.read(name), target)

    return make


def with_pickle(pickled: bytes, storage: bytes = b"\0" * 64) -> Maker:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as target:
            target.writestr("archive/data.pkl", pickled)
            target.writestr("archive/byteorder", b"little")
            target.writestr("archive/data/0", storage)
            target.writestr("archive/version", b"3\n")

    return make


def tensor_pickle(shape: tuple[int, ...], stride: tuple[int, ...], numel: int, kind: str = "FloatStorage", key: str = "0") -> bytes:
    """data.pkl of {"w": tensor} with any claim about its shape."""

    def integer(value: int) -> bytes:
        return b"\x8a\x08" + struct.pack("<q", value)

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    return (
        b"\x80\x02}(" + text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
        + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + integer(numel) + b"tQK\x00("
        + b"".join(map(integer, shape)) + b"t(" + b"".join(map(integer, stride))
        + b"t\x89ccollections\nOrderedDict\n)RtRu."
    )  # fmt: skip


def deflated(name: str, content: bytes, target: zipfile.ZipFile) -> None:
    target.writestr(name, content, zipfile.ZIP_DEFLATED)


def bomb(name: str, content: bytes, target: zipfile.ZipFile) -> None:
    target.writestr(name, b"\0" * (64 << 20) if name.endswith("data/0") else content, zipfile.ZIP_DEFLATED)


def doubled(name: str, content: bytes, target: zipfile.ZipFile) -> None:
    target.writestr(name, content)
    if name.endswith("data.pkl"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.writestr(name, content)


def renamed(to: str) -> Callable[[str, bytes, zipfile.ZipFile], None]:
    def change(name: str, content: bytes, target: zipfile.ZipFile) -> None:
        target.writestr(to if name.endswith("/version") else name, content)

    return change


def flipped(path: Path) -> None:
    torch.save({"w": torch.ones(1000)}, path)
    raw = bytearray(path.read_bytes())
    at = raw.index(struct.pack("<4f", 1, 1, 1, 1))
    raw[at + 3] ^= 0x40
    path.write_bytes(raw)


def sparse(path: Path) -> None:
    indices = torch.tensor([[0, 1], [1, 2]])
    torch.save({"w": torch.sparse_coo_tensor(indices, torch.ones(2), (2, 3), check_invariants=True)}, path)


def nan(value: float) -> dict[str, torch.Tensor]:
    state = good_state()
    state["fc.weight"][1, 2] = value
    return state


def legacy(path: Path) -> None:
    torch.save(good_state(), path, _use_new_zipfile_serialization=False)


def plain_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"w": [1.0, 2.0]}))


def gadget(path: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Gadget()}, path)


def bytes_in_front(path: Path) -> None:
    torch.save(good_state(), path)
    path.write_bytes(b"#!" + path.read_bytes())


def script(path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(good_state(), buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        target.writestr("archive/constants.pkl", b"\x80\x02).")


DEEP = b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b"."
PRODUCT = (1 << 40,)

HOSTILE: dict[str, tuple[str, Maker]] = {
    "nan": ("not_finite", saved(nan(float("nan")))),
    "infinity": ("not_finite", saved(nan(float("inf")))),
    "half_infinity": ("not_finite", saved({"w": torch.full((3,), float("-inf"), dtype=torch.bfloat16)})),
    "empty_file": ("empty_file", lambda path: path.write_bytes(b"")),
    "text": ("no_torch_archive", lambda path: path.write_bytes(b"hello")),
    "plain_pickle": ("no_torch_archive", plain_pickle),
    "legacy": ("legacy_format", legacy),
    "gadget": ("unsafe_pickle", gadget),
    "raw_gadget": ("unsafe_pickle", with_pickle(pickle.dumps(Gadget(), protocol=2))),
    "stack_global": ("unsafe_pickle", with_pickle(pickle.dumps(Gadget(), protocol=4))),
    "protocol_5": ("unsafe_pickle", saved(good_state(), pickle_protocol=5)),
    "whole_module": ("whole_module", saved(nn.Sequential(nn.Linear(4, 3)))),
    "own_module": ("whole_module", saved(Net())),
    "module_in_dict": ("whole_module", saved({"model": Net(), "epoch": 3})),
    "stride_0_bomb": ("bad_tensor", with_pickle(tensor_pickle(PRODUCT, (0,), 16))),
    "stride_0_two": ("bad_tensor", with_pickle(tensor_pickle((1 << 20, 1 << 20), (0, 0), 16))),
    "beyond_storage": ("unreadable", with_pickle(tensor_pickle((1 << 20,), (1,), 16))),
    "negative_shape": ("unreadable", with_pickle(tensor_pickle((-4,), (1,), 16))),
    "huge_storage_claim": ("unreadable", with_pickle(tensor_pickle((16,), (1,), 1 << 40))),
    "missing_storage": ("unreadable", with_pickle(tensor_pickle((16,), (1,), 16, key="7"))),
    "path_as_key": ("unreadable", with_pickle(tensor_pickle((16,), (1,), 16, key="../../etc/passwd"))),
    "deflated": ("compressed", rezipped(deflated)),
    "deflated_bomb": ("compressed", rezipped(bomb)),
    "sparse": ("sparse_tensor", sparse),
    "quantized": ("quantized_tensor", with_pickle(tensor_pickle((4,), (1,), 4, kind="QInt8Storage"))),
    "complex": ("complex_tensor", saved({"w": torch.ones(2, dtype=torch.complex64)})),
    "flipped": ("damaged", flipped),
    "nested": ("nested", saved({"encoder": good_state()})),
    "checkpoint": ("checkpoint", saved({"state_dict": good_state(), "epoch": 3})),
    "epoch_beside": ("not_a_tensor", saved({**good_state(), "epoch": 3})),
    "list": ("no_state_dict", saved([torch.ones(2)])),
    "one_tensor": ("no_state_dict", saved(torch.ones(2))),
    "no_tensors": ("no_tensors", saved({})),
    "integer_keys": ("bad_name", saved({0: torch.ones(2)})),
    "control_in_name": ("bad_name", saved({"a\nb": torch.ones(2)})),
    "numpy": ("numpy_value", saved({"w": torch.ones(2).numpy()})),
    "float8": ("bad_dtype", saved({"w": torch.ones(2).to(torch.float8_e5m2)})),
    "meta": ("unsafe_pickle", saved({"w": torch.ones(2, device="meta")})),
    "huge_pickle": ("pickle_too_large", with_pickle(b"\x80\x02" + b"N0" * (5 << 20) + b"}.")),
    "damaged_pickle": ("damaged", with_pickle(b"\x80\x02X\xff\xff\xff\x7fabc")),
    "deep_pickle": ("no_state_dict", with_pickle(DEEP)),
    "duplicates": ("bad_archive", rezipped(doubled)),
    "parent_path": ("bad_archive", rezipped(renamed("archive/../../evil"))),
    "absolute_path": ("bad_archive", rezipped(renamed("/etc/cron.d/evil"))),
    "backslash": ("bad_archive", rezipped(renamed("archive\\evil"))),
    "two_roots": ("bad_archive", rezipped(renamed("other/version"))),
    "bytes_in_front": ("no_torch_archive", bytes_in_front),
    "torchscript": ("torchscript", script),
    "many_views": ("too_large", saved({str(i): t for i, t in enumerate([torch.zeros(1 << 20)] * 600)})),
}  # fmt: skip
