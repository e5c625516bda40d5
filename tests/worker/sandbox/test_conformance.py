"""What every sandbox promises: the training contract, and an end that is told apart from every other."""

import gzip
import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from gridx_worker.sandbox.base import DependenciesFailed, StopSwitch
from gridx_worker.sandbox.process import ProcessSandbox
from gridx_worker.stream import OutputSplitter
from tests.worker.fakes import make_wheel
from tests.worker.sandbox.conftest import LIMITS, MARK, MB, Bench

MINIMAL = "open('model.pth', 'wb').write(b'x')\n"
TRAINING = """
import argparse, os, random, sys
import numpy, pandas, torch
import gridx_task
parser = argparse.ArgumentParser()
parser.add_argument("--csv-path")
arguments = parser.parse_args()
if __name__ == "__main__":
    frame = pandas.read_csv(arguments.csv_path)
    print("rows", len(frame), "at", os.getcwd() == os.path.dirname(os.path.abspath(__file__)), "argv", sys.argv)
    print("draws", random.random(), numpy.random.rand(), torch.rand(1).item(), torch.get_num_threads())
    print("hyper", gridx_task.hyperparameters(), "schema", gridx_task.schema())
    model = torch.nn.Linear(2, 1)
    print("global", gridx_task.load_global_model(model))
    gridx_task.report(epoch=1, loss=torch.tensor(0.5), accuracy=numpy.float64(0.25))
    torch.save(model.state_dict(), "model.pth")
"""


class TestContract:
    def test_a_training_script(self, bench: Bench) -> None:
        work = bench.work(TRAINING, data="a,b\n1,2\n3,4\n", arguments=["--csv-path", "data.csv"])
        (work.input / "schema.json").write_text('{"columns": 2}')
        torch.save({"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, work.input / "global_model.pth")
        outcome = bench.run_work(work)
        assert (outcome.kind, outcome.exit_code) == (None, 0), bench.text
        assert hashlib.sha256(bench.result).hexdigest() == outcome.sha256
        assert outcome.size == len(bench.result)
        assert work.output.stat().st_mode & 0o777 == 0o600
        events: list[dict[str, object]] = []
        splitter = OutputSplitter(MARK, on_text=lambda text: None, on_event=events.append)
        splitter.feed(bench.output.data)
        assert events == [{"event": "started"}, {"event": "report", "epoch": 1, "loss": 0.5, "accuracy": 0.25, "more": {}}]
        assert "rows 2 at True argv ['train.py', '--csv-path', 'data.csv']" in bench.text
        assert "hyper {} schema {'columns': 2}" in bench.text
        assert "global True" in bench.text
        # The same on every machine, and what torch draws after manual_seed(5).
        torch.manual_seed(5)
        assert f"draws 0.6229016948897019 0.22199317108973948 {torch.rand(1).item()} 1" in bench.text
        assert torch.equal(torch.load(work.output, weights_only=True)["weight"], torch.ones(1, 2))

    def test_relative_output_of_a_script_that_knows_nothing_of_us(self, bench: Bench) -> None:
        outcome = bench.run("import pandas, torch\ntorch.save({'n': torch.tensor(len(pandas.read_csv('data.csv')))}, 'model.pth')")
        assert outcome.kind is None
        assert torch.load(bench.last.output, weights_only=True)["n"] == 1

    def test_evaluation(self, bench: Bench) -> None:
        script = "def evaluate(model_path, csv_path):\n    return {'accuracy': 0.5, 'n': len(open(csv_path).readlines())}\n"
        script += "if __name__ == '__main__':\n    raise SystemExit(9)\n"
        work = bench.work(script, output_name="evaluation.json", environment={"GRIDX_KIND": "evaluate", "GRIDX_MARK": MARK})
        assert bench.run_work(work).kind is None, bench.text
        assert bench.result == b'{"accuracy": 0.5, "n": 2.0}'

    def test_environment_holds_nothing_of_the_agent(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GRIDX_KEY", "secret-key-of-the-provider")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key-of-the-provider")
        assert bench.run("import os\nprint(dict(os.environ))\n" + MINIMAL).kind is None
        assert "GRIDX_SEED" in bench.text
        assert "secret-key" not in bench.text
        assert "GRIDX_INPUT" not in bench.text

    def test_output_before_the_end_is_seen_as_it_comes(self, bench: Bench) -> None:
        result: list[object] = []
        thread = threading.Thread(target=lambda: result.append(bench.run("import time\nprint('first', flush=True)\ntime.sleep(600)")))
        thread.start()
        bench.output.wait_for(b"first")
        bench.stop.throw("cancelled")
        thread.join(30)
        assert result


class TestEnds:
    def test_traceback_shows_the_script_only(self, bench: Bench) -> None:
        outcome = bench.run("def load():\n    return {}['label']\n\nload()\n")
        assert (outcome.kind, outcome.exit_code) == ("script", 1)
        assert "KeyError: 'label'" in bench.text
        assert "train.py" in bench.text
        assert "line 2, in load" in bench.text
        assert "launcher.py" not in bench.text

    def test_exit_code_of_the_script(self, bench: Bench) -> None:
        outcome = bench.run("raise SystemExit(7)")
        assert (outcome.kind, outcome.exit_code) == ("script", 7)
        outcome = bench.run("import sys\nsys.exit('no rows left')")
        assert (outcome.kind, outcome.exit_code) == ("script", 1)
        assert "no rows left" in bench.text

    def test_it_ends_as_python_does(self, bench: Bench) -> None:
        script = """
import atexit, threading, weakref
import torch
class Told:
    def __del__(self):
        open("model.pth", "ab").write(b"deleted ")
told = Told()
told.itself = told
atexit.register(lambda: open("model.pth", "ab").write(b"at exit "))
weakref.finalize(told, lambda: open("model.pth", "ab").write(b"finalized "))
first, begun = threading.Event(), threading.Event()
def later():
    begun.set()
    first.wait()
    open("model.pth", "ab").write(b"joined ")
threading.Thread(target=later).start()
begun.wait()
print("the end", end="")
first.set()
"""
        assert bench.run(script).kind is None
        assert bench.result == b"joined at exit finalized deleted "
        assert bench.text.endswith("the end")

    def test_files_left_open_are_whole(self, bench: Bench) -> None:
        assert bench.run("file = open('model.pth', 'w')\nfile.write('not closed')").kind is None
        assert bench.result == b"not closed"
        assert bench.run("import gzip\nfile = gzip.open('model.pth', 'wb')\nfile.write(b'with its trailer')").kind is None
        assert gzip.decompress(bench.result) == b"with its trailer"
        assert bench.run("import builtins\nbuiltins.kept = open('model.pth', 'w')\nbuiltins.kept.write('held elsewhere')").kind is None
        assert bench.result == b"held elsewhere"

    def test_a_large_file_comes_whole(self, bench: Bench) -> None:
        script = (
            "import hashlib, os\ndata = os.urandom(40 << 20)\nprint(hashlib.sha256(data).hexdigest())\nopen('model.pth', 'wb').write(data)"
        )
        outcome = bench.run(script)
        assert (outcome.kind, outcome.size, len(bench.result)) == (None, 40 * MB, 40 * MB)
        assert outcome.sha256 == hashlib.sha256(bench.result).hexdigest()
        assert outcome.sha256 in bench.text

    def test_a_script_that_makes_its_output_non_blocking_harms_only_its_own(self, bench: Bench) -> None:
        script = """
import contextlib, fcntl, os
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)
with contextlib.suppress(BlockingIOError):
    for _ in range(1000):
        os.write(1, b"x" * 65536)
open("model.pth", "wb").write(bytes(20 << 20))
os._exit(0)
"""
        outcome = bench.run(script)
        assert (outcome.kind, outcome.size) == (None, 20 * MB), outcome
        assert bench.run("print('the next')\n" + MINIMAL).kind is None
        assert bench.text.endswith("the next\n")

    def test_syntax_error(self, bench: Bench) -> None:
        outcome = bench.run("def broken(:\n")
        assert outcome.kind == "script"
        assert "SyntaxError" in bench.text

    def test_killed_by_a_signal_of_its_own(self, bench: Bench) -> None:
        outcome = bench.run("import os\nos.kill(os.getpid(), 11)")
        assert (outcome.kind, outcome.exit_code) == ("script", 139)
        assert "SIGSEGV" in outcome.reason

    def test_no_model(self, bench: Bench) -> None:
        outcome = bench.run("print('done')")
        assert outcome.kind == "output"
        assert "torch.save(model.state_dict(), 'model.pth')" in outcome.reason

    @pytest.mark.parametrize(
        "script",
        [
            "import os\nos.symlink('/etc/passwd', 'model.pth')",
            "import os\nos.mkfifo('model.pth')",
            "import os\nos.mkdir('model.pth')",
            "open('model.pth', 'w')",
        ],
        ids=["link", "pipe", "folder", "empty"],
    )
    def test_model_that_is_no_file_with_contents(self, bench: Bench, script: str) -> None:
        outcome = bench.run(script)
        assert outcome.kind == "output"
        assert not bench.last.output.exists()

    def test_model_over_the_cap(self, bench: Bench) -> None:
        outcome = bench.run("open('model.pth', 'wb').write(b'x' * 2_000_000)", output_bytes=1_000_000)
        assert outcome.kind == "output"
        assert "2000000 bytes" in outcome.reason

    def test_deadline(self, bench: Bench) -> None:
        before = time.monotonic()
        outcome = bench.run("import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass", seconds=4)
        assert outcome.kind == "timeout"
        assert time.monotonic() - before < 40

    def test_cancel(self, bench: Bench) -> None:
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(bench.run("print('go', flush=True)\nwhile True: pass")))
        thread.start()
        bench.output.wait_for(b"go")
        bench.stop.throw("cancelled", "by the buyer")
        thread.join(40)
        assert not thread.is_alive()
        assert getattr(results[0], "stopped", None) == "cancelled"

    def test_stopped_before_it_began(self, bench: Bench) -> None:
        bench.stop.throw("shutdown")
        assert bench.run("while True: pass").stopped == "shutdown"

    def test_too_much_memory(self, bench: Bench) -> None:
        outcome = bench.run("blocks = []\nwhile True: blocks.append(bytearray(20_000_000))")
        assert outcome.kind == "memory"
        assert f"{LIMITS.memory_bytes // MB} MB" in outcome.reason

    def test_fork_bomb_ends(self, bench: Bench) -> None:
        script = "import os, time\nfor _ in range(500):\n    if os.fork() == 0:\n        time.sleep(600)\n"
        assert bench.run(script, seconds=30).kind == "script"

    def test_children_left_behind_do_not_hold_it_up(self, bench: Bench) -> None:
        script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\n" + MINIMAL
        before = time.monotonic()
        assert bench.run(script).kind is None
        assert time.monotonic() - before < 60

    def test_endless_print_of_one_line_is_not_kept(self, bench: Bench) -> None:
        bench.output.keep = 1000
        bench.output.when(lambda total: total > 5_000_000, lambda: bench.stop.throw("cancelled"))
        outcome = bench.run("import sys\nwhile True: sys.stdout.write('x' * 100_000)")
        assert outcome.stopped == "cancelled"


class TestRequirements:
    def install(self, bench: Bench, *lines: str, **changes: Any) -> Path | None:
        values: dict[str, Any] = {"cap_s": 60, "cap_bytes": 50 * MB, "deadline": time.monotonic() + 60}
        return bench.sandbox.install(lines, stop=StopSwitch(), **(values | changes))

    def test_what_is_there_is_not_installed(self, bench: Bench) -> None:
        assert self.install(bench, "numpy>=1", "torch", "pandas") is None

    def test_missing_package_is_installed_with_what_it_needs(self, bench: Bench, wheels: Path) -> None:
        make_wheel(wheels, "alpha_pkg", "1.2", requires=["beta_pkg>=1", "numpy"])
        make_wheel(wheels, "beta_pkg", "1.0")
        packages = self.install(bench, "alpha_pkg==1.2")
        outcome = bench.run("import alpha_pkg, beta_pkg\nprint(alpha_pkg.VERSION, beta_pkg.VERSION)\n" + MINIMAL, packages=packages)
        assert outcome.kind is None, bench.text
        assert "1.2 1.0" in bench.text
        for wheel in wheels.glob("*_pkg-*.whl"):
            wheel.unlink()
        assert self.install(bench, "alpha_pkg==1.2") == packages  # from the cache

    def test_unknown_package(self, bench: Bench) -> None:
        with pytest.raises(DependenciesFailed, match="nosuch_pkg"):
            self.install(bench, "nosuch_pkg")

    def test_other_torch(self, bench: Bench) -> None:
        with pytest.raises(DependenciesFailed, match="Remove the pin of torch"):
            self.install(bench, "torch==1.13.1")

    def test_dependency_at_an_address_of_its_own(self, bench: Bench, wheels: Path) -> None:
        hidden = make_wheel(wheels / "hidden", "gamma_pkg", "1.0")
        where = hidden.as_uri() if isinstance(bench.sandbox, ProcessSandbox) else f"file:///find-links/0/hidden/{hidden.name}"
        make_wheel(wheels, "delta_pkg", "1.0", requires=[f"gamma_pkg @ {where}"])
        with pytest.raises(DependenciesFailed, match="not the package index"):
            self.install(bench, "delta_pkg")

    def test_too_large(self, bench: Bench, wheels: Path) -> None:
        make_wheel(wheels, "large_pkg", "1.0", files={"large_pkg_data.py": "#" * 30 * MB})
        with pytest.raises(DependenciesFailed):
            self.install(bench, "large_pkg", cap_bytes=5 * MB)
