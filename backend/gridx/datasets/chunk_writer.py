"""Writes the chunk files of a split: buffers per chunk, threads that hash and write, and nothing left behind unless published."""

import hashlib
import os
import queue
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

_BUFFER_BYTES = 1 << 20  # per chunk; a thread hand-over costs more than it brings below that
BUFFERS_BYTES = 48 << 20  # of all chunks together
_PIECE_BYTES = 1 << 17
_QUEUED = 8
_OPEN_FILES = 200


@dataclass(slots=True)
class _Output:
    path: Path
    temporary: Path
    pieces: list[bytes] = field(default_factory=list[bytes])
    buffered: int = 0
    hasher: Any = field(default_factory=hashlib.sha256)
    size: int = 0
    fd: int | None = None


class _Worker:
    """A thread that does one thing with every full buffer, in order; after an error with none."""

    def __init__(self, work: Callable[[_Output, list[bytes]], None], on_error: Callable[[BaseException], None]) -> None:
        self._work, self._on_error = work, on_error
        self._queue: queue.Queue[tuple[_Output, list[bytes]] | None] = queue.Queue(_QUEUED)
        self._thread = threading.Thread(target=self._run, name="split", daemon=True)
        self._thread.start()

    def put(self, output: _Output, pieces: list[bytes]) -> None:
        self._queue.put((output, pieces))

    def stop(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        failed = False
        while (item := self._queue.get()) is not None:
            if failed:
                continue
            try:
                self._work(*item)
            except BaseException as error:  # handed to the caller's thread
                self._on_error(error)
                failed = True


class ChunkWriter:
    """Buffers per chunk; one thread hashes what is full, another writes it. Leaves nothing behind unless published.

    `is_busy`: the caller holds the interpreter lock nearly all the time, so that a third thread would cost more than it brings.
    """

    def __init__(self, out_dir: Path, chunks: int, *, is_busy: bool) -> None:
        self._suffix = suffix = f".{secrets.token_hex(4)}.tmp"
        names = (f"chunk-{chunk:05d}.csv" for chunk in range(chunks))
        self._outputs = [_Output(out_dir / name, out_dir / f".{name}{suffix}") for name in names]
        self._extra: list[Path] = []
        self._limit = max(1, min(_BUFFER_BYTES, BUFFERS_BYTES // chunks))
        self._keep_open = chunks <= _OPEN_FILES
        self._error: BaseException | None = None
        works = [self._hash_and_write] if is_busy else [self._hash, self._write]
        self._workers = [_Worker(work, self._fail) for work in works]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        for output in self._outputs:
            if output.fd is not None:
                os.close(output.fd)
                output.fd = None
            output.temporary.unlink(missing_ok=True)
        for path in self._extra:
            self._hidden(path).unlink(missing_ok=True)

    def put(self, chunk: int, data: bytes) -> None:
        output = self._outputs[chunk]
        output.pieces.append(data)
        output.buffered += len(data)
        if output.buffered >= self._limit:
            self._send(output)

    def close(self) -> list[tuple[Path, int, str]]:
        """Writes what is buffered; (path, bytes, sha256) per chunk."""
        for output in self._outputs:
            self._send(output)
        self._stop()
        if self._error is not None:
            raise self._error
        return [(output.path, output.size, output.hasher.hexdigest()) for output in self._outputs]

    def temporary(self, path: Path) -> Path:
        """Where to write a further file that `publish` will move to `path`."""
        self._extra.append(path)
        return self._hidden(path)

    def publish(self) -> None:
        for output in self._outputs:
            output.temporary.replace(output.path)
        for path in self._extra:
            self._hidden(path).replace(path)

    def _hidden(self, path: Path) -> Path:
        return path.with_name(f".{path.name}{self._suffix}")

    def _send(self, output: _Output) -> None:
        if self._error is not None:
            raise self._error
        pieces, output.pieces, output.buffered = output.pieces, [], 0
        if len(pieces) > 1 and len(pieces[1]) < _PIECE_BYTES:
            pieces = [b"".join(pieces)]  # each hand-over of the interpreter lock costs more than the copy
        for worker in self._workers:
            worker.put(output, pieces)

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error

    def _hash(self, output: _Output, pieces: list[bytes]) -> None:
        for piece in pieces:
            output.hasher.update(piece)
            output.size += len(piece)

    def _hash_and_write(self, output: _Output, pieces: list[bytes]) -> None:
        self._hash(output, pieces)
        self._write(output, pieces)

    def _write(self, output: _Output, pieces: list[bytes]) -> None:
        fd = output.fd
        if fd is None:
            fd = os.open(output.temporary, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[os.write(fd, view) :]
        finally:
            if self._keep_open:
                output.fd = fd
            else:
                os.close(fd)
