"""Runs a script in a child of the launcher, and ends that child as Python would end."""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

EVALUATION = "evaluation.json"
_scripts: list[types.ModuleType] = []
"""What `run_script` made in this process."""


def run_script(path: Path, name: str = "__main__") -> dict[str, Any]:
    """Runs the script as module `name` and returns its globals."""
    module = types.ModuleType(name)
    module.__dict__.update(__file__=str(path.absolute()), __builtins__=__builtins__, __cached__=None, __loader__=None)
    sys.modules[name] = module
    _scripts.append(module)
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


def run(work: Callable[[Path], object], script: Path, emit: Callable[[dict[str, Any]], None]) -> NoReturn:
    """Does `work` with the script and ends the process as Python would, with a traceback that shows the script's frames only."""
    code = 0
    try:
        work(script)
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException as error:
        lines = traceback.format_exception(type(error), error, _below_this(error.__traceback__))
        text = "".join(lines)
        print(text, end="", file=sys.stderr, flush=True)
        emit({"event": "error", "traceback": text[-3000:], "memory": isinstance(error, MemoryError)})
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    leave(code)


def leave(code: int) -> NoReturn:
    """Ends the process as Python does: threads joined, exit functions run, the script's objects deleted, files flushed.

    The libraries alone are not torn down: that copies every page which the child shares with the launcher, a third of a second.
    """
    for end in (threading._shutdown, atexit._run_exitfuncs, _delete_script, gc.collect, _flush):  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
        try:
            end()
        except BaseException:  # the script's own, as in a destructor: Python tells and goes on
            with contextlib.suppress(Exception):
                traceback.print_exc()
    os._exit(code)


def _exit_code(error: SystemExit) -> int:
    """Of sys.exit(): None is 0, a number is itself, all else is printed and means 1."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr, flush=True)
    return 1


def _delete_script() -> None:
    while _scripts:
        vars(_scripts.pop()).clear()


def _flush() -> None:
    """What stands in buffers of files that the script left open. Frozen objects are the launcher's and not looked at."""
    for each in gc.get_objects():
        if issubclass(type(each), io.IOBase):
            with contextlib.suppress(Exception):
                each.flush()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _below_this(frames: types.TracebackType | None) -> types.TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames
