"""Multipart forms on their way to disk: each file is written, counted and hashed once, while it arrives.

Call it in the body of an async route, after its dependencies have found out who sends; nothing is read before.
"""

import hashlib
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from anyio import to_thread
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from gridx.core.errors import Invalid, TooLarge
from gridx.core.streams import UploadBroken, check_announced_size, stream_to_file, too_large, write_all, writing

__all__ = ["Form", "ReceivedFile", "UploadBroken", "is_multipart", "receive_form", "stream_to_file"]

_BLOCK_BYTES = 1 << 20
_MAX_FIELDS = 50
_MAX_FIELD_BYTES = 1 << 20
_MAX_HEADER_BYTES = 8192


@dataclass(frozen=True)
class ReceivedFile:
    """A file part. `filename` is what the sender calls it: to be shown, never used as a path."""

    path: Path
    filename: str
    bytes: int
    sha256: str


@dataclass
class Form:
    """What arrived. The files vanish at the end of `receive_form`'s block, except those moved away."""

    fields: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, ReceivedFile] = field(default_factory=dict[str, ReceivedFile])


def is_multipart(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


@asynccontextmanager
async def receive_form(request: Request, folder: Path, *, file_limits: Mapping[str, int], limit: int) -> AsyncGenerator[Form]:
    """Read a multipart body. Parts named in `file_limits` (name -> bytes) become files in `folder`, all others are text.

    Raises:
        Invalid: this is no multipart form, or a part comes twice, or is no UTF-8.
        TooLarge: the body is larger than `limit` bytes, or a part than its own limit.
        UploadBroken: the sender went away.
    """
    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if not is_multipart(request) or not boundary:
        raise Invalid("the body must be multipart/form-data with a boundary")
    check_announced_size(request, limit)
    await to_thread.run_sync(lambda: folder.mkdir(parents=True, exist_ok=True))
    parts = _Parts(folder, file_limits)
    try:
        await _feed(request, parts, boundary, limit)
        yield parts.form
    finally:
        parts.discard()


async def _feed(request: Request, parts: "_Parts", boundary: bytes, limit: int) -> None:
    try:
        parser = MultipartParser(boundary, parts.callbacks())  # pyright: ignore[reportArgumentType] - its TypedDict is private
    except FormParserError:
        raise Invalid("the boundary of the multipart form is too long") from None
    buffer, count = bytearray(), 0

    def parse() -> None:
        with writing():
            parser.write(bytes(buffer))
        buffer.clear()

    try:
        async for block in request.stream():
            count += len(block)
            if count > limit:
                raise too_large(limit)
            buffer += block
            if len(buffer) >= _BLOCK_BYTES:
                await to_thread.run_sync(parse)
        await to_thread.run_sync(parse)
        parser.finalize()
    except FormParserError:
        raise Invalid("the body is not a well-formed multipart form") from None
    except ClientDisconnect:
        raise UploadBroken("the upload broke off; nothing of it was kept") from None
    if not parts.is_complete:
        raise Invalid("the multipart form ends in the middle; its closing boundary is missing")


class _Parts:
    """Takes the parser's events, one part after the other. Runs in a worker thread, never two calls at once."""

    def __init__(self, folder: Path, file_limits: Mapping[str, int]) -> None:
        self.form = Form()
        self.is_complete = False
        self._folder = folder
        self._file_limits = file_limits
        self._made: list[Path] = []
        self._begin()

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def discard(self) -> None:
        """Close and remove what nobody took."""
        if self._file is not None:
            self._file.close()
        for path in self._made:
            path.unlink(missing_ok=True)

    def _begin(self) -> None:
        self._header_name, self._header, self._disposition = bytearray(), bytearray(), b""
        self._name, self._filename = "", ""
        self._file: FileIO | None = None
        self._text, self._bytes, self._digest = bytearray(), 0, hashlib.sha256()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]
        self._check_header()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._check_header()

    def _check_header(self) -> None:
        if len(self._header_name) + len(self._header) > _MAX_HEADER_BYTES:
            raise Invalid("a part of the form has a header that is too long")

    def _header_end(self) -> None:
        if bytes(self._header_name).lower() == b"content-disposition":
            self._disposition = bytes(self._header)
        self._header_name, self._header = bytearray(), bytearray()

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = _decoded(options.get(b"name", b""), "the name of a part")
        self._filename = _decoded(options.get(b"filename", b""), "a file name")
        if not self._name:
            raise Invalid("a part of the form has no name")
        if self._name in self.form.files or self._name in self.form.fields:
            raise Invalid(f"{self._name[:60]}: comes twice")
        if len(self.form.fields) + len(self.form.files) >= _MAX_FIELDS:
            raise Invalid(f"the form has more than {_MAX_FIELDS} parts")
        if self._name in self._file_limits:
            path = self._folder / f"form-{secrets.token_hex(16)}"
            self._file = path.open("xb", buffering=0)
            self._made.append(path)

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._bytes += end - start
        limit = self._file_limits.get(self._name, _MAX_FIELD_BYTES)
        if self._bytes > limit:
            raise TooLarge(f"{self._name[:60]}: larger than the {limit} bytes that are allowed here")
        if self._file is None:
            self._text += data[start:end]
            return
        block = data[start:end]
        self._digest.update(block)
        write_all(self._file, block)

    def _part_end(self) -> None:
        if self._file is None:
            self.form.fields[self._name] = _decoded(bytes(self._text), self._name[:60])
            return
        self._file.close()
        self._file = None
        self.form.files[self._name] = ReceivedFile(self._made[-1], self._filename, self._bytes, self._digest.hexdigest())

    def _end(self) -> None:
        self.is_complete = True


def _decoded(data: bytes, what: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{what}: is not UTF-8") from None
    if "\0" in text:
        raise Invalid(f"{what}: must not contain a NUL character")
    return text
