"""Runs buyers' scripts inside the sandbox: `python launcher.py`, one order after another from standard input.

The launcher imports the heavy libraries once. For each order it forks a child, which runs the script as `__main__` in a folder of its
own; when the child ends, everything it started is killed before the end is reported. As PID 1 of a container, or as a subreaper, it knows
all of them. When the orders end, because the agent did, so does whatever runs.

Orders, one JSON object a line: {"do": "run", "folder", "input", "arguments", "environment", "packages", "seconds", "token"},
{"do": "take", "folder", "name", "most"} and {"do": "wipe"}. Answers, one a line on standard error: {"event": "ready"},
{"event": "started", "pid"}, {"event": "ended", "code", "out_of_memory", "out_of_time", "outputs"}, {"event": "file", "size"} or
{"event": "file", "problem"}, {"event": "wiped", "well"}. Standard output is the scripts' alone; the order's token follows the last
byte of each, and then come the bytes of a file that is taken.

Environment: GRIDX_WITHOUT (one of PRELOADED that is left to the scripts); GRIDX_THREADS; GRIDX_WALLS
(folders to wipe, in a container: the launcher is then closed to its children, and they get a filter of system calls); GRIDX_PARENT
(process id of the agent, when on the same machine); GRIDX_RLIMITS.
"""

import contextlib
import ctypes
import gc
import json
import os
import random
import select
import shutil
import signal
import stat
import sys
import time
import weakref
from pathlib import Path
from typing import Any, NoReturn

from gridx_script import evaluate, run, run_script

SCRIPT = "train.py"
OUTPUTS = "outputs"
PRIVATE = ("GRIDX_KIND", "GRIDX_WITHOUT", "GRIDX_THREADS", "GRIDX_WALLS", "GRIDX_PARENT", "GRIDX_RLIMITS")
PRELOADED = ("numpy", "pandas", "torch", "torch._dynamo")
"""Without torch._dynamo, each child's first optimizer step would import it."""
OOM_KILLS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def main() -> NoReturn:
    follow_parent(signal.SIGTERM, os.environ.get("GRIDX_PARENT"))
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    walls = os.environ.get("GRIDX_WALLS")
    if walls:
        _prctl(PR_SET_DUMPABLE, 0)  # no child may trace this process or reach its files under /proc
    # As PID 1 of a container it gets no signal that it has no handler for: its children cannot end it, the agent kills the container.
    signal.signal(signal.SIGTERM, signal.SIG_IGN if walls else _give_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(without=os.environ.get("GRIDX_WITHOUT"))
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    answer({"event": "ready"})
    orders = Orders()
    while (order := orders.next()) is not None:
        if order["do"] == "wipe":
            answer({"event": "wiped", "well": wipe(walls.split(":") if walls else [])})
            continue
        if order["do"] == "take":
            hand_over(order["folder"], order["name"], order["most"])
            continue
        kills = out_of_memory_kills()
        child = os.fork()
        if not child:
            signal.set_wakeup_fd(-1)
            become_script(order, walls=bool(walls))
        answer({"event": "started", "pid": child})
        code, timely = watch(child, orders, woken, order.get("seconds"))
        kill_family()
        os.set_blocking(1, True)  # a script may have changed that for all who hold the stream
        os.write(1, order["token"].encode())
        left_outputs = os.path.lexists(os.path.join(order["folder"], OUTPUTS))
        killed = out_of_memory_kills() > kills
        answer({"event": "ended", "code": code, "out_of_time": not timely, "out_of_memory": killed, "outputs": left_outputs})
    kill_family()
    os._exit(0)


class Orders:
    """The lines of standard input. No buffered reader: a child would inherit what it holds."""

    def __init__(self) -> None:
        self._rest = b""

    def next(self) -> dict[str, Any] | None:
        """The next order, None when there will be none."""
        while b"\n" not in self._rest:
            block = os.read(0, 65536)
            if not block:
                return None
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def have_ended(self) -> bool:
        """Called when standard input can be read while a script runs: that is its end, or a further order, which waits."""
        block = os.read(0, 65536)
        self._rest += block
        return not block


def answer(message: dict[str, Any]) -> None:
    os.write(2, json.dumps(message).encode() + b"\n")


def watch(child: int, orders: Orders, woken: int, seconds: float | None) -> tuple[int, bool]:
    """Waits for the child: (its exit code, 128 + n when signal n killed it; whether it was in time).

    The time is a second belt: the agent has the first. When the orders end, the agent is gone, and so is this process.
    """
    end = None if seconds is None else time.monotonic() + seconds
    timely = True
    while True:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    code = os.waitstatus_to_exitcode(found[1])
                    return (code if code >= 0 else 128 - code), timely
        left = None if end is None else max(end - time.monotonic(), 0.0)
        readable, _, _ = select.select([0, woken], [], [], left)
        if 0 in readable and orders.have_ended():
            kill_family()
            os._exit(0)
        if woken in readable:
            os.read(woken, 4096)
        if end is not None and time.monotonic() >= end:
            timely, end = False, None
            os.kill(child, signal.SIGKILL)


def become_script(order: dict[str, Any], *, walls: bool) -> NoReturn:
    """In the child: into the script's folder, behind the walls, and off. Nothing of the launcher's is left open."""
    follow_parent(signal.SIGKILL, str(os.getppid()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(1, 2)
    os.closerange(3, 4096)
    set_limits(os.environ.get("GRIDX_RLIMITS"))
    if walls:
        _prctl(PR_SET_DUMPABLE, 1)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")  # when memory ends, the script goes and not the launcher
        import syscall_filter

        syscall_filter.install(rank=order["environment"].get("GRIDX_MODE") == "ddp")
    threads = max(int(os.environ.get("GRIDX_THREADS") or 1), 1)
    os.environ.update(order["environment"])
    evaluating = os.environ.get("GRIDX_KIND") == "evaluate"
    for name in PRIVATE:
        os.environ.pop(name, None)
    os.makedirs(order["folder"], exist_ok=True)
    os.chdir(order["folder"])
    link_inputs(order["input"])
    sys.path[:0] = [os.getcwd(), *([order["packages"]] if order.get("packages") else [])]
    sys.argv = [SCRIPT, *order["arguments"]]
    from gridx_task import emit

    seed_everything(int(os.environ.get("GRIDX_SEED") or 0), threads)
    emit({"event": "started"})
    if evaluating:
        run(evaluate, Path(SCRIPT), emit)
    run(run_script, Path(SCRIPT), emit)


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
        time.sleep(0.002)


def hand_over(folder: str, name: str, most: int) -> None:
    """Writes the file that a script left to standard output, unless it has more than `most` bytes. Nothing that the script made is
    followed, or waited for."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        finally:
            os.close(place)
    except FileNotFoundError:
        answer({"event": "file", "problem": "missing"})
        return
    except OSError:
        answer({"event": "file", "problem": "irregular"})
        return
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            answer({"event": "file", "problem": "irregular"})
            return
        answer({"event": "file", "size": status.st_size})
        size = status.st_size if status.st_size <= most else 0
        sent = 0
        while sent < size and (count := os.sendfile(1, source, sent, size - sent)):
            sent += count
    finally:
        os.close(source)


def wipe(folders: list[str]) -> bool:
    """Empties the folders that a script could write to; False when something stays."""
    for folder in folders:
        for entry in os.scandir(folder):
            try:
                if entry.is_dir(follow_symlinks=False):
                    _open_up(entry.path)
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            except (OSError, RecursionError):
                return False
    return True


def _open_up(folder: str) -> None:
    """Gives rights back that a script took away from its own folders."""
    os.chmod(folder, stat.S_IRWXU)
    for path, names, _ in os.walk(folder):  # top down: each is opened before it is entered
        for name in names:
            if not os.path.islink(inner := os.path.join(path, name)):
                os.chmod(inner, stat.S_IRWXU)


def out_of_memory_kills() -> int:
    """How many processes of this container the kernel has killed for memory."""
    for file in OOM_KILLS:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(file).read_text(encoding="ascii").splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


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


def link_inputs(folder: str) -> None:
    """Links every input into the working folder, so that scripts open `data.csv` by its bare name."""
    for entry in sorted(Path(folder).iterdir()):
        target = Path(entry.name)
        if not target.is_symlink() and not target.exists():
            target.symlink_to(entry)


def preload(*, without: str | None) -> None:
    """Imports what nearly every script does, as far as it is here. No thread may start here, and no GPU be touched: children are forked."""
    gc.disable()  # looking for garbage again and again takes a fifth of the time, and finds next to none
    for name in PRELOADED:
        if name != without:
            with contextlib.suppress(ImportError):
                __import__(name)
    for each in list(weakref.finalize._registry):  # pyright: ignore[reportAttributeAccessIssue]
        each.atexit = False  # of the libraries, and the launcher's business: PyTorch's take 60 ms at each child's end
    gc.freeze()  # a collection in a child would copy every page of these
    gc.enable()


def seed_everything(seed: int, threads: int) -> None:
    """Seeds random, numpy and torch: a script without a seed of its own then begins from the same weights on every machine."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(threads)


def _give_up(_signal: int, _frame: Any) -> NoReturn:
    kill_family()
    os._exit(128 + signal.SIGTERM)


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
