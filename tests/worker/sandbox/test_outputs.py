"""Files that a script leaves in outputs/: taken by both sandboxes, within their caps, whatever lies there."""

import hashlib
from typing import Any

from tests.worker.sandbox.conftest import MB, Bench

MODEL = "open('model.pth', 'wb').write(b'x')\nimport os\nos.mkdir('outputs')\n"


def run(bench: Bench, script: str, **caps: int) -> tuple[dict[str, bytes], str]:
    values: dict[str, Any] = {"outputs": bench.folder / f"outputs-{bench.number}", "outputs_count": 20, "outputs_bytes": MB, **caps}
    work = bench.work(MODEL + script, **values)
    outcome = bench.run_work(work)
    assert outcome.kind is None, outcome.reason
    for file in outcome.outputs:
        content = file.path.read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    return {file.name: file.path.read_bytes() for file in outcome.outputs}, "\n".join(outcome.notes)


class TestOutputs:
    def test_files_are_taken(self, bench: Bench) -> None:
        script = "open('outputs/curve.csv', 'w').write('a,b')\nopen('outputs/a plot.png', 'wb').write(b'png')\n"
        assert run(bench, script) == ({"curve.csv": b"a,b", "a_plot.png": b"png"}, "")

    def test_no_folder_is_fine(self, bench: Bench) -> None:
        assert run(bench, "os.rmdir('outputs')\n") == ({}, "")

    def test_what_is_too_large_or_one_too_many_is_left_out_by_name(self, bench: Bench) -> None:
        script = "for name in 'abcd': open('outputs/' + name, 'wb').write(name.encode() * (2000 if name == 'b' else 10))\n"
        files, notes = run(bench, script, outputs_count=2, outputs_bytes=1000)
        assert files == {"a": b"a" * 10, "c": b"c" * 10}
        assert "[outputs/b was left out: b has 2000 bytes; at most 990 are taken]" in notes
        assert "[outputs/d was left out: there are 2 files already]" in notes

    def test_links_folders_and_pipes_are_no_files(self, bench: Bench) -> None:
        deep = "os.mkdir('outputs/deep')\nopen('outputs/deep/x', 'w').write('1')\n"
        script = f"os.symlink('/etc/passwd', 'outputs/link')\n{deep}os.mkfifo('outputs/pipe')\n"
        files, notes = run(bench, script)
        assert files == {}
        assert "link was left out" in notes
        assert "pipe was left out" in notes

    def test_a_folder_that_is_a_link_is_not_followed(self, bench: Bench) -> None:
        assert run(bench, "os.rmdir('outputs')\nos.symlink('/etc', 'outputs')\n")[0] == {}
