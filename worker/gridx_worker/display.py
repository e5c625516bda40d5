"""What a person at the terminal sees: one line for the subtask in hand, or why there is none, and what the machine earned."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from gridx_protocol.messages import ProfileReply, TaskReply
from gridx_worker.heartbeat import Current

REFRESH_PER_S = 4.0


class Display:
    """Draws on a terminal; where the console is none, nothing is drawn and the log tells."""

    def __init__(self, console: Console) -> None:
        self._progress = None
        if console.is_terminal:
            columns = SpinnerColumn(), _Words(), _Share(), TimeElapsedColumn()
            self._progress = Progress(*columns, console=console, transient=True, refresh_per_second=REFRESH_PER_S)
        self._idle: Any = None
        self._earned = ""

    def open(self) -> None:
        if self._progress is not None:
            self._progress.start()
            self._idle = self._progress.add_task("", words="asking for work", current=None, total=None)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def refresh(self) -> None:
        """Draws now; it is drawn some times a second anyway."""
        if self._progress is not None:
            self._progress.refresh()

    @contextmanager
    def work(self, task: TaskReply, current: Current) -> Generator[None]:
        """While a subtask is in hand."""
        if self._progress is None:
            yield
            return
        self._progress.update(self._idle, visible=False)
        shown = self._progress.add_task("", words=describe(task), current=current, total=1.0)
        try:
            yield
        finally:
            self._progress.remove_task(shown)
            self._progress.reset(self._idle, visible=True, current=None, words=f"asking for work{self._earned}")

    def idle(self, standing: ProfileReply) -> None:
        """How the server sees the machine, while it has nothing to do."""
        self._earned = f" · {earnings(standing)}"
        if self._progress is not None:
            self._progress.update(self._idle, words=f"{standing.idle_because or 'asking for work'}{self._earned}")


def describe(task: TaskReply) -> str:
    """`job 7 "iris", round 2 of 5, chunk 3`"""
    title = f" “{task.title[:40]}”" if task.title else ""
    piece = "evaluation" if task.kind == "evaluate" else f"chunk {task.chunk}"
    return f"job {task.job_id}{title}, round {task.round} of {task.rounds}, {piece}"


def earnings(standing: ProfileReply) -> str:
    return f"{standing.earned} credits earned with {standing.accepted} subtasks"


class _Words(ProgressColumn):
    def render(self, task: Task) -> Text:
        current: Current | None = task.fields["current"]
        if current is None:
            return Text(task.fields["words"])
        epoch = f", epoch {current.epoch}" if current.epoch is not None else ""
        return Text(f"{task.fields['words']}: {current.phase.lower()}{epoch}")


class _Share(BarColumn):
    def render(self, task: Task) -> ProgressBar:
        current: Current | None = task.fields["current"]
        if current is None:
            return ProgressBar(total=1.0, completed=0.0, width=1)
        return ProgressBar(total=1.0, completed=current.progress or 0.0, width=24, pulse=current.progress is None)
