"""The live dashboard in the terminal."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gridx.orchestrator.view import GangView, Watched

_REFRESH_PER_S = 4
_QUIET_S = 5.0
_COLOURS = {"TRAINING": "green", "DONE": "green", "ABORTED": "red", "WAITING": "yellow", "FORMING": "yellow"}


@contextmanager
def show(watched: Watched, *, enabled: bool, console: Console | None = None) -> Generator[None]:
    """While the block runs, the terminal shows what is watched, as it changes."""
    if not enabled:
        yield
        return
    with Live(get_renderable=lambda: render(watched.views()), refresh_per_second=_REFRESH_PER_S, console=console or Console()) as live:
        yield
        live.refresh()


def render(views: list[GangView]) -> RenderableType:
    """One table for each gang."""
    return Group(*map(_table, views)) if views else Text("no synchronous training right now")


def _table(view: GangView) -> Table:
    colour = _COLOURS.get(view.status, "white")
    table = Table(
        title=f"{escape(view.title)}  [{colour}]{view.status}[/{colour}]  {len(view.lines)} of {view.world_size} ranks",
        caption=escape(view.note) or None,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("rank", justify="right")
    table.add_column("worker")
    table.add_column("state")
    for name in ("epoch", "step", "loss", "samples/s", "heard of"):
        table.add_column(name, justify="right")
    for line in view.lines:
        quiet = line.silent_s is not None and line.silent_s > _QUIET_S
        table.add_row(
            str(line.rank),
            escape(line.worker),
            line.state,
            _number(line.epoch, "d"),
            _number(line.step, "d"),
            _number(line.loss, ".4f"),
            _number(line.samples_per_s, ".0f"),
            "-" if line.silent_s is None else f"{line.silent_s:.0f} s ago",
            style="red" if quiet else None,
        )
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
