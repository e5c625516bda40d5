"""Starts a buyer's train.py inside the sandbox: `python launcher.py [ARGUMENT...]`, in the folder where the script shall run.

A parent watches over a forked child. The child seeds the random number generators, then runs the script as `__main__`. The parent
takes the child's whole family with it, whatever ends first: as PID 1 of a container, or on a machine whose agent was killed.

Environment: GRIDX_INPUT (folder whose files are linked into the working folder), GRIDX_SEED, GRIDX_KIND (train or evaluate),
GRIDX_THREADS, GRIDX_PACKAGES (folder of the job's own packages),
GRIDX_PARENT (process id of the agent, when on the same machine), GRIDX_RLIMITS.
"""

import contextlib
import ctypes
import json
import os
import random
import signal
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

SCRIPT = "train.py"
EVALUATION = "evaluation.json"
PRIVATE = ("GRIDX_INPUT", "GRIDX_KIND", "GRIDX_THREADS", "GRIDX_PACKAGES", "GRIDX_PARENT", "GRIDX_RLIMITS")
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main() -> NoReturn:
    follow_parent(signal.SIGTERM, os.environ.get("GRIDX_PARENT"))
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    launcher = os.getpid()
    child = os.fork()
    if child:
        watch(child)
    follow_parent(signal.SIGKILL, str(launcher))
    set_limits(os.environ.get("GRIDX_RLIMITS"))
    link_inputs(os.environ.get("GRIDX_INPUT"))
    prepare_imports()
    from gridx_task import emit

    evaluating = os.environ.get("GRIDX_KIND") == "evaluate"
    seed_everything(int(os.environ.get("GRIDX_SEED") or 0))
    emit({"event": "started"})
    for name in PRIVATE:
        os.environ.pop(name, None)
    if evaluating:
        run(lambda: evaluate(Path(SCRIPT)), emit)
    run(lambda: run_script(Path(SCRIPT), "__main__"), emit)


def watch(child: int) -> NoReturn:
    """Waits for the child, kills what it left behind, and ends with its exit code (128 + n when signal n killed it)."""

    def give_up(_signal: int, _frame: Any) -> NoReturn:
        kill_family()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, give_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    kill_family()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def kill_family() -> None:
    """Kills all descendants. Orphans are re-parented to this process (it is the subreaper), so that a few passes find them all."""
    for _ in range(1000):
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def follow_parent(number: int, expected: str | None) -> None:
    """Asks the kernel to send signal `number` when the parent dies; ends at once if it is dead already."""
    if not expected:
        return
    _prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != int(expected):
        os._exit(128 + signal.SIGKILL)


def set_limits(text: str | None) -> None:
    """Lowers this process's resource limits, given as JSON of the names without RLIMIT_ (a container has its own)."""
    if not text:
        return
    import resource

    for name, value in json.loads(text).items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (top, top))


def link_inputs(folder: str | None) -> None:
    """Links every input into the working folder, so that scripts open `data.csv` by its bare name."""
    if not folder:
        return
    for entry in sorted(Path(folder).iterdir()):
        target = Path(entry.name)
        if not target.is_symlink() and not target.exists():
            target.symlink_to(entry)


def prepare_imports() -> None:
    """Makes sys.path what `python train.py` would have, plus the helper and the job's own packages."""
    here = str(Path(__file__).resolve().parent)
    sys.path[0] = os.getcwd()
    sys.path[1:1] = [path for path in (os.environ.get("GRIDX_PACKAGES"), here) if path]
    sys.argv = [SCRIPT, *sys.argv[1:]]


def seed_everything(seed: int) -> None:
    """Seeds random, numpy and torch: a script without a seed of its own then begins from the same weights on every machine."""
    random.seed(seed)
    threads = max(int(os.environ.get("GRIDX_THREADS") or 1), 1)
    try:
        import numpy

        numpy.random.seed(seed % 2**32)
    except ImportError:
        pass
    try:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(threads)
    except ImportError:
        pass


def run_script(path: Path, name: str) -> dict[str, Any]:
    """Runs the script as module `name` and returns its globals."""
    module = types.ModuleType(name)
    module.__dict__.update(__file__=str(path.absolute()), __builtins__=__builtins__, __cached__=None, __loader__=None)
    sys.modules[name] = module
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    exec(code, module.__dict__)  # the sandbox exists for this
    return module.__dict__


def evaluate(path: Path) -> None:
    """Calls the script's evaluate(model_path, csv_path) on held-out rows and writes its numbers to evaluation.json."""
    names = run_script(path, "train")
    if not callable(names.get("evaluate")):
        raise LookupError("train.py has no function evaluate(model_path, csv_path)")
    result = names["evaluate"]("global_model.pth", "data.csv")
    if not isinstance(result, dict):
        raise TypeError(f"evaluate() returned {type(result).__name__}, not a dict of numbers")
    Path(EVALUATION).write_text(json.dumps({str(name): float(value) for name, value in result.items()}), encoding="utf-8")


def run(work: Any, emit: Any) -> NoReturn:
    """Runs `work` and ends the process as Python would, with a traceback that shows the script's frames only."""
    try:
        work()
    except SystemExit:
        raise
    except BaseException as error:
        lines = traceback.format_exception(type(error), error, _below_launcher(error.__traceback__))
        text = "".join(lines)
        print(text, end="", file=sys.stderr, flush=True)
        emit({"event": "error", "traceback": text[-3000:], "memory": isinstance(error, MemoryError)})
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    sys.exit(0)


def _below_launcher(frames: types.TracebackType | None) -> types.TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames


def _children() -> list[int]:
    """Process ids of this process's direct children."""
    me = os.getpid()
    found: list[int] = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    if int(file.read().rpartition(")")[2].split()[1]) == me:
                        found.append(int(entry))
            except (OSError, IndexError, ValueError):
                continue
    return found


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # no Linux: the agent's own kill still ends the process group
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
