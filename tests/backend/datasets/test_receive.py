"""Multipart bodies cut at every possible place, hostile ones, and ones that never end."""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from gridx.core.errors import GridxError, Invalid, TooLarge
from gridx.core.streams import UploadBroken
from gridx.datasets.receive import Form, receive_form

BOUNDARY = "BoUnDaRy"
FILE = b"a,b\r\n1,2\r\n--BoUn\r\n" + bytes(range(256))


def part(disposition: str, content: bytes) -> bytes:
    return f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def receive(
    blocks: list[bytes | None], folder: Path, *, limit: int = 10_000_000, file_limit: int = 1_000_000, content_type: str | None = None
) -> tuple[Form, dict[str, bytes]]:
    """What a body that arrives in `blocks` becomes; None is the sender going away. Also the files' contents."""
    remaining = list(blocks)

    async def next_block() -> dict[str, Any]:
        block = remaining.pop(0)
        if block is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": block, "more_body": bool(remaining)}

    kind = content_type if content_type is not None else f"multipart/form-data; boundary={BOUNDARY}"
    headers = [(b"content-type", kind.encode())]
    request = Request({"type": "http", "method": "POST", "headers": headers, "path": "/", "query_string": b""}, next_block)

    async def run() -> tuple[Form, dict[str, bytes]]:
        async with receive_form(request, folder, file_limits={"file_data": file_limit}, limit=limit) as form:
            return form, {name: file.path.read_bytes() for name, file in form.files.items()}

    return anyio.run(run)


GOOD = body(part('name="title"', "Iris ü".encode()), part('name="file_data"; filename="d.csv"', FILE))


class TestReceiveForm:
    @pytest.mark.parametrize("step", [1, 2, 7, 63, 100_000])
    def test_fields_and_files_arrive_however_the_body_is_cut(self, tmp_path: Path, step: int) -> None:
        blocks: list[bytes | None] = [GOOD[at : at + step] for at in range(0, len(GOOD), step)]
        form, contents = receive(blocks, tmp_path)
        assert form.fields == {"title": "Iris ü"}
        file = form.files["file_data"]
        assert (file.filename, file.bytes, file.sha256) == ("d.csv", len(FILE), hashlib.sha256(FILE).hexdigest())
        assert contents == {"file_data": FILE}

    def test_the_files_are_gone_afterwards(self, tmp_path: Path) -> None:
        receive([GOOD], tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_part_without_a_file_name_is_a_file(self, tmp_path: Path) -> None:
        form, contents = receive([body(part('name="file_data"', b"x"))], tmp_path)
        assert (form.files["file_data"].filename, contents) == ("", {"file_data": b"x"})

    def test_a_file_under_another_name_is_text(self, tmp_path: Path) -> None:
        form, _ = receive([body(part('name="other"; filename="x"', b"text"))], tmp_path)
        assert form.fields == {"other": "text"}

    @pytest.mark.parametrize(
        ("sent", "words"),
        [
            (body(part('name="a"', b"1"), part('name="a"', b"2")), "comes twice"),
            (body(part('name="file_data"', b"1"), part('name="file_data"', b"2")), "comes twice"),
            (body(part('filename="x"', b"1")), "no name"),
            (body(part('name="a"', b"\xff")), "not UTF-8"),
            (body(part('name="a"', b"a\0b")), "NUL"),
            (body(*(part(f'name="f{number}"', b"") for number in range(51))), "more than 50 parts"),
            (body(part('name="' + "a" * 9000 + '"', b"1")), "too long|well-formed"),
            (part('name="file_data"', FILE), "ends in the middle"),
            (GOOD[:-9], "ends in the middle"),
            (b"", "ends in the middle"),
            (b"no form at all", "well-formed"),
        ],
    )
    def test_what_is_no_proper_form_is_malformed_and_leaves_nothing(self, tmp_path: Path, sent: bytes, words: str) -> None:
        with pytest.raises(Invalid, match=words):
            receive([sent], tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "content_type",
        ["", "text/csv", "multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'b' * 300}"],
    )
    def test_another_kind_of_body_is_malformed(self, tmp_path: Path, content_type: str) -> None:
        with pytest.raises(Invalid, match="multipart"):
            receive([GOOD], tmp_path, content_type=content_type)

    @pytest.mark.parametrize(
        ("sent", "limits"),
        [
            (GOOD, {"limit": len(GOOD) - 1}),
            (GOOD, {"file_limit": len(FILE) - 1}),
            (body(part('name="a"', b"x" * (1 << 20) + b"x")), {}),
        ],
    )
    def test_what_is_too_large_leaves_nothing(self, tmp_path: Path, sent: bytes, limits: dict[str, Any]) -> None:
        with pytest.raises(TooLarge):
            receive([sent], tmp_path, **limits)
        assert list(tmp_path.iterdir()) == []

    def test_a_sender_that_goes_away_leaves_nothing(self, tmp_path: Path) -> None:
        large = body(part('name="file_data"', b"x" * 3_000_000))
        with pytest.raises(UploadBroken):
            receive([large[:2_500_000], None], tmp_path, file_limit=5_000_000)
        assert list(tmp_path.iterdir()) == []

    def test_random_bytes_never_end_in_anything_but_an_error_in_words(self, tmp_path: Path) -> None:
        import random

        for seed in range(200):
            noise = bytearray(GOOD)
            chooser = random.Random(seed)
            for _ in range(3):
                noise[chooser.randrange(len(noise))] = chooser.randrange(256)
            with suppress(GridxError):
                receive([bytes(noise)], tmp_path)
        assert list(tmp_path.iterdir()) == []
