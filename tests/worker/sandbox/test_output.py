"""What a script may leave where its output belongs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gridx_worker.sandbox.output import BadOutput, take_file


def _file_for_folder(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("a file where the folder was")


def _unreadable(folder: Path) -> None:
    (folder / "model.pth").write_bytes(b"x")
    (folder / "model.pth").chmod(0)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "link": lambda folder: (folder / "model.pth").symlink_to("/etc/passwd"),
    "pipe": lambda folder: os.mkfifo(folder / "model.pth"),
    "folder": lambda folder: (folder / "model.pth").mkdir(),
    "nothing": lambda folder: None,
    "no folder": Path.rmdir,
    "file for the folder": _file_for_folder,
    "empty": lambda folder: (folder / "model.pth").touch(),
    "too large": lambda folder: (folder / "model.pth").write_bytes(b"x" * 101),
}


class TestTakeFile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_what_cannot_be_taken_is_the_scripts_doing(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "work"
        folder.mkdir()
        HOSTILE[name](folder)
        with pytest.raises(BadOutput, match=r"model\.pth"):
            take_file(folder, "model.pth", tmp_path / "taken", 100)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
    def test_rights_taken_away(self, tmp_path: Path) -> None:
        folder = tmp_path / "work"
        folder.mkdir()
        _unreadable(folder)
        with pytest.raises(BadOutput, match="can be read"):
            take_file(folder, "model.pth", tmp_path / "taken", 100)
