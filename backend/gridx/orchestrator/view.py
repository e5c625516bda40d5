"""What the dashboard shows, whoever keeps it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class RankLine:
    """One rank. `silent_s`: seconds since it was last heard of; None once it has left."""

    rank: int
    worker: str
    state: str
    epoch: int | None = None
    step: int | None = None
    loss: float | None = None
    samples_per_s: float | None = None
    silent_s: float | None = None


@dataclass(frozen=True)
class GangView:
    """A group of ranks that train in step; `note` says in words what it waits for or why it ended."""

    title: str
    status: str
    world_size: int
    note: str
    lines: tuple[RankLine, ...]


class Watched(Protocol):
    """Whatever can be looked at."""

    def views(self) -> list[GangView]: ...
