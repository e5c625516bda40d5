"""What an uploaded `.pth` is before anybody loads it: its container, its entries, and the code its pickle names.

Pure Python over the bytes; nothing is unpickled. PyTorch's format: a STORED zip with `<root>/data.pkl` and one
`<root>/data/<key>` per storage.
"""

import pickletools
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gridx.aggregation.summary import UpdateCaps, UpdateRefused

SAVE_STATE_DICT: Final = "save the state_dict: torch.save(model.state_dict(), 'model.pth')"
_LEGACY_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LOCAL = struct.Struct("<4s5H3I2H")
_READ_BYTES = 1 << 20

_STORAGES = ("Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_REBUILDERS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter")
ALLOWED_GLOBALS: Final = frozenset(
    {("collections", "OrderedDict"), ("torch", "Size"), ("torch.storage", "UntypedStorage")}
    | {("torch._utils", name) for name in _REBUILDERS}
    | {("torch", f"{name}Storage") for name in _STORAGES}
)
_ALLOWED_OPCODES = frozenset(
    {"PROTO", "STOP", "MARK", "POP", "POP_MARK", "GLOBAL", "REDUCE", "BUILD", "NONE", "NEWTRUE", "NEWFALSE"}
    | {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "BINPERSID"}
    | {"BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"}
    | {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS"}
)
# Globals that have an explanation of their own: (module or its first part, part of the name, code, words).
_EXPLAINED = (
    ("torch", "sparse", "sparse_tensor", "a sparse tensor; save it dense: tensor.to_dense()"),
    ("torch.serialization", "_get_layout", "sparse_tensor", "a sparse tensor; save it dense: tensor.to_dense()"),
    ("torch", "qtensor", "quantized_tensor", "a quantized tensor; save the model before quantizing it"),
    ("torch", "QInt", "quantized_tensor", "a quantized tensor; save the model before quantizing it"),
    ("torch", "QUInt", "quantized_tensor", "a quantized tensor; save the model before quantizing it"),
    ("torch", "Complex", "complex_tensor", "a complex tensor; save real and imaginary parts as two tensors"),
    ("torch._utils", "_rebuild_tensor_v3", "bad_dtype", "a dtype that is not merged; convert it: tensor.float()"),
    ("numpy", "", "numpy_value", f"NumPy values; an update holds tensors only, {SAVE_STATE_DICT}"),
)


@dataclass(frozen=True, slots=True)
class Archive:
    """A checked archive: `root` is the folder of its entries, `globals` what its pickle names (module, name)."""

    root: str
    globals: frozenset[tuple[str, str]]
    storage_bytes: int


def check_archive(source: Path, caps: UpdateCaps) -> Archive:
    """Refuses (UpdateRefused) what is no plain torch.save archive of a state_dict; reads every byte once."""
    size = source.stat().st_size
    if size == 0:
        raise UpdateRefused("empty_file", "model.pth is empty (0 bytes); the script ended before the model was written")
    if size > caps.max_bytes:
        raise UpdateRefused("too_large", f"model.pth has {size} bytes; at most {caps.max_bytes} are accepted")
    with source.open("rb") as file:
        _check_magic(file.read(64), size)
    try:
        with zipfile.ZipFile(source) as archive:
            infos = archive.infolist()
            root = _check_entries(source, archive, infos, size, caps)
            pickled = archive.read(f"{root}/data.pkl")
            found = scan_pickle(pickled)
            for info in infos:
                _check_crc(archive, info)
    except (zipfile.BadZipFile, EOFError, OSError, struct.error, NotImplementedError, ValueError, RuntimeError) as error:
        if isinstance(error, UpdateRefused):
            raise
        raise UpdateRefused("damaged", f"model.pth is cut off or damaged ({error}); upload it again") from None
    storages = sum(info.file_size for info in infos if info.filename.startswith(f"{root}/data/"))
    return Archive(root=root, globals=found, storage_bytes=storages)


def scan_pickle(pickled: bytes) -> frozenset[tuple[str, str]]:
    """The globals a data.pkl names, all of them allowed; raises UpdateRefused with words for what is not."""
    found: set[tuple[str, str]] = set()
    unexpected: str | None = None
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name in ("GLOBAL", "INST"):
                module, _, name = str(argument).partition(" ")
                found.add((module, name))
            if opcode.name not in _ALLOWED_OPCODES:
                unexpected = unexpected or opcode.name
    except Exception as error:  # pickletools raises whatever a malformed argument leads to
        raise UpdateRefused("damaged", f"model.pth's data.pkl is damaged ({error}); save and upload it again") from None
    _check_globals(found - ALLOWED_GLOBALS)
    if unexpected is not None:
        detail = f"model.pth's pickle uses {unexpected}, which torch.save does not write for a state_dict;"
        raise UpdateRefused("unsafe_pickle", f"{detail} {SAVE_STATE_DICT} without further arguments")
    return frozenset(found)


def _check_globals(unknown: set[tuple[str, str]]) -> None:
    if not unknown:
        return
    modules = [(module, name) for module, name in unknown if module.startswith("torch.nn.modules.")]
    own = [(module, name) for module, name in unknown if module in ("__main__", "__mp_main__", "train")]
    if modules or own:
        name = sorted(own or modules)[0][1]
        raise UpdateRefused("whole_module", f"model.pth holds a whole pickled object ({name}); {SAVE_STATE_DICT}")
    for module, name in sorted(unknown):
        for prefix, part, code, words in _EXPLAINED:
            if (module == prefix or module.startswith(f"{prefix}.")) and part in name:
                raise UpdateRefused(code, f"model.pth holds {words}")
    module, name = sorted(unknown)[0]
    detail = f"model.pth's pickle names {f'{module}.{name}'!a:.120}, which no state_dict needs"
    raise UpdateRefused("unsafe_pickle", f"{detail}; {SAVE_STATE_DICT}")


def _check_magic(head: bytes, size: int) -> None:
    if head.startswith(b"PK\x03\x04"):
        return
    if _LEGACY_MAGIC in head[:16]:
        raise UpdateRefused(
            "legacy_format",
            "model.pth is in PyTorch's legacy format; drop _use_new_zipfile_serialization=False from torch.save",
        )
    if head[:1] == b"\x80":
        raise UpdateRefused("no_torch_archive", f"model.pth is a plain pickle; {SAVE_STATE_DICT}")
    if len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < size:
        raise UpdateRefused("safetensors", f"model.pth is a safetensors file; {SAVE_STATE_DICT}")
    raise UpdateRefused("no_torch_archive", f"model.pth is no file that torch.save wrote; {SAVE_STATE_DICT}")


def _check_entries(source: Path, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], size: int, caps: UpdateCaps) -> str:
    """Checks names, sizes and places of all entries against the directory and the local headers; returns the root."""
    if len(infos) > caps.max_tensors + 16:
        raise UpdateRefused("too_many_tensors", f"model.pth has {len(infos)} entries; {caps.max_tensors} are accepted")
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        raise UpdateRefused("bad_archive", "model.pth's archive holds an entry twice; save it with torch.save")
    pickles = [name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1 or archive.comment:
        raise UpdateRefused("bad_archive", f"model.pth's archive has no data.pkl of its own; {SAVE_STATE_DICT}")
    root = pickles[0].partition("/")[0]
    position = 0
    with source.open("rb") as file:
        for info in sorted(infos, key=lambda entry: entry.header_offset):
            _check_entry(info, root)
            if info.header_offset < position or (position == 0 and info.header_offset != 0):
                raise UpdateRefused("bad_archive", "model.pth's archive has entries that overlap or bytes in front")
            file.seek(info.header_offset)
            local = _LOCAL.unpack(file.read(_LOCAL.size))
            if local[3] != zipfile.ZIP_STORED or local[7] not in (0, info.file_size, 0xFFFFFFFF):
                raise UpdateRefused("bad_archive", "model.pth's archive contradicts its own directory")
            position = info.header_offset + _LOCAL.size + local[9] + local[10] + info.file_size
            if position > size:
                raise UpdateRefused("damaged", "model.pth is cut off or damaged; upload it again")
    if any(name.startswith(f"{root}/code/") or name == f"{root}/constants.pkl" for name in names):
        raise UpdateRefused("torchscript", f"model.pth is a TorchScript archive; {SAVE_STATE_DICT}")
    if archive.getinfo(pickles[0]).file_size > caps.max_pickle_bytes:
        raise UpdateRefused("pickle_too_large", f"model.pth's data.pkl is larger than {caps.max_pickle_bytes} bytes")
    order = f"{root}/byteorder"
    if order in names and (archive.getinfo(order).file_size > 16 or archive.read(order) != b"little"):
        raise UpdateRefused("byte_order", "model.pth was saved big-endian; save it on a little-endian machine")
    return root


def _check_entry(info: zipfile.ZipInfo, root: str) -> None:
    name = info.filename
    plain = name == info.orig_filename and name.isprintable() and "\\" not in name and len(name) <= 512
    if not plain or not name.startswith(f"{root}/") or any(part in ("", ".", "..") for part in name.split("/")):
        raise UpdateRefused("bad_archive", f"model.pth's archive holds the entry {name!a:.80}; save it with torch.save")
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 0x2061:
        raise UpdateRefused("compressed", "model.pth's archive is compressed or encrypted; upload what torch.save wrote")


def _check_crc(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    with archive.open(info) as entry:  # zipfile compares names with the local header, and the CRC at the end
        while entry.read(_READ_BYTES):
            pass
