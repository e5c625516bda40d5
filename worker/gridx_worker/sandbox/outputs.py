"""Taking the files that a script left in outputs/, as many and as large as the job may: what does not fit is left out by name."""

import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from gridx_worker.sandbox.base import Taken, Work
from gridx_worker.sandbox.output import BadOutput, copy_capped, take_file

FOLDER = "outputs"
_MOST_LOOKED_AT = 1000
_MOST_NOTES = 10
_UNSENDABLE = re.compile(r"[^A-Za-z0-9._-]")


class Outputs:
    """Collects from one source or another; `taken` and `notes` (words for the job's output) tell the result."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._left = work.outputs_bytes
        self.taken: list[Taken] = []
        self.notes: list[str] = []

    def take_from_folder(self, folder: Path) -> None:
        """folder/outputs on this machine. No link is followed."""
        place = folder / FOLDER
        if place.is_symlink() or not place.is_dir():
            return
        for path in _first(sorted(place.iterdir())):
            self._take(path.name, lambda target, cap, path=path: take_file(place, path.name, target, cap))

    def take_from_archive(self, archive: tarfile.TarFile) -> None:
        """The folder as Docker packs it: outputs/, outputs/name, ..."""
        for entry in _first(iter(archive)):
            folder, _, name = entry.name.partition("/")
            if folder != FOLDER or not name or "/" in name:
                if name.count("/") == 1 and not entry.isdir():
                    self._leave_out(name, "it lies in a folder of its own")
                continue
            if not entry.isreg() or entry.issparse():
                if not entry.isdir():
                    self._leave_out(name, "it is no regular file")
                continue

            def copy(target: Path, cap: int, entry: tarfile.TarInfo = entry, name: str = name) -> tuple[int, str]:
                content = cast(Any, archive.extractfile(entry))
                return copy_capped(content.read, name, target, size=entry.size, cap=cap)

            self._take(name, copy)

    def _take(self, name: str, copy: Callable[[Path, int], tuple[int, str]]) -> None:
        if self._work.outputs is None:
            return
        sendable = _UNSENDABLE.sub("_", name)[:100].lstrip(".-")
        if not sendable or any(sendable == each.name for each in self.taken):
            self._leave_out(name, "its name does not tell it apart")
        elif len(self.taken) >= self._work.outputs_count:
            self._leave_out(name, f"there are {self._work.outputs_count} files already")
        else:
            self._work.outputs.mkdir(exist_ok=True)
            target = self._work.outputs / sendable
            try:
                size, digest = copy(target, self._left)
            except BadOutput as error:
                target.unlink(missing_ok=True)
                self._leave_out(name, str(error))
                return
            self._left -= size
            self.taken.append(Taken(sendable, target, size, digest))

    def _leave_out(self, name: str, why: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"[{FOLDER}/{_UNSENDABLE.sub('_', name)[:100]} was left out: {why}]")


def _first(entries: Iterable[Any]) -> Iterator[Any]:
    for count, entry in enumerate(entries):
        if count >= _MOST_LOOKED_AT:
            return
        yield entry
