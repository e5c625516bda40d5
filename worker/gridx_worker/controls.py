"""When a machine works, as its provider set it: in certain hours, and only while it is idle."""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import psutil

log = logging.getLogger(__name__)

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK_MINUTES = 7 * 24 * 60
_SPAN = re.compile(r"^(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?)(?:\s+|$))?(?:(?P<from>\d{1,2}:\d{2})\s*-\s*(?P<to>\d{1,2}:\d{2}))?$")
BUSY_S = 5.0
"""Over so long the machine's load is measured at least."""
MOST_BUSY = 0.25
"""Share of all cores that others may use on a machine that counts as idle."""


@dataclass(frozen=True)
class WorkingHours:
    """Spans of the week in minutes since Monday 0:00, local time; one may go over its end."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def is_open(self, now: datetime) -> bool:
        minute = now.weekday() * 1440 + now.hour * 60 + now.minute
        return any((minute - begin) % WEEK_MINUTES < length for begin, length in self.spans)

    def opens_at(self, now: datetime) -> datetime:
        """The next minute at which it opens."""
        begun = now.replace(second=0, microsecond=0)
        minute = now.weekday() * 1440 + now.hour * 60 + now.minute
        return begun + timedelta(minutes=min((begin - minute) % WEEK_MINUTES for begin, _ in self.spans))


def parse_hours(text: str) -> WorkingHours:
    """`Mon-Fri 18:00-8:00, Sat-Sun`: spans that may go past midnight; days alone mean all day, hours alone every day. Raises ValueError."""
    spans: list[tuple[int, int]] = []
    for part in (piece.strip().lower() for piece in text.split(",")):
        found = _SPAN.match(part)
        if not part or not found:
            raise ValueError(f"{part!r} is no span of hours; write `18:00-8:00`, `Sat-Sun` or `Mon-Fri 18:00-8:00`, separated by commas")
        begin, end = (_minute(found["from"]), _minute(found["to"])) if found["from"] else (0, 0)
        length = (end - begin) % 1440 or 1440
        spans += [(day * 1440 + begin, length) for day in _days(found["days"])]
    return WorkingHours(text, tuple(spans))


class Load:
    """What others than Grid-X use of this machine's cores. `own_roots` gives the process ids that Grid-X's containers begin with."""

    def __init__(self, own_roots: Callable[[], list[int]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._own_roots, self._clock = own_roots, clock
        self._last: tuple[float, float, dict[tuple[int, float], float]] | None = None
        self._share = 0.0

    def share(self) -> float:
        """Of all cores, from 0 to 1, since the last look; looks that come sooner than BUSY_S after it repeat the last answer."""
        now = self._clock()
        if self._last is not None and now - self._last[0] < BUSY_S:
            return self._share
        busy, own = _busy_seconds(), self._own_seconds()
        if self._last is not None:
            then, busy_then, own_then = self._last
            ours = sum(max(seconds - own_then.get(process, seconds), 0.0) for process, seconds in own.items())
            used = max(busy - busy_then - ours, 0.0)
            self._share = min(used / ((now - then) * (psutil.cpu_count() or 1)), 1.0)
        self._last = now, busy, own
        return self._share

    def _own_seconds(self) -> dict[tuple[int, float], float]:
        """Processor time of each of our processes, that of its ended children included."""
        found: dict[tuple[int, float], float] = {}
        for pid in [psutil.Process().pid, *self._own_roots()]:
            try:
                root = psutil.Process(pid)
                for process in (root, *root.children(recursive=True)):
                    times = process.cpu_times()
                    found[process.pid, process.create_time()] = sum(times[:4])
            except psutil.Error:
                continue
        return found


class Gate:
    """Whether the agent may ask for work now."""

    def __init__(
        self,
        *,
        hours: WorkingHours | None,
        most_busy: float | None,
        load: Load,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self._hours, self._most_busy, self._load, self._now = hours, most_busy, load, now

    def why_closed(self) -> str | None:
        """In words for the provider; None when it is open."""
        now = self._now()
        if self._hours is not None and not self._hours.is_open(now):
            return f"its working hours are {self._hours.text}; the next begin on {self._hours.opens_at(now):%a at %H:%M}"
        if self._most_busy is not None and (share := self._load.share()) > self._most_busy:
            return f"others use {share:.0%} of its cores; it works while they use at most {self._most_busy:.0%}"
        return None


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return sum(times[:8]) - idle  # the rest, guest time, is in the user's already


def _minute(text: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if hours > 24 or minutes > 59 or (hours == 24 and minutes):
        raise ValueError(f"{text!r} is no time of day")
    return (hours * 60 + minutes) % 1440


def _days(text: str | None) -> list[int]:
    if text is None:
        return list(range(7))
    names = text.split("-")
    for name in names:
        if name not in DAYS:
            raise ValueError(f"{name!r} is no day; write {', '.join(DAYS)}")
    first, last = DAYS.index(names[0]), DAYS.index(names[-1])
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]
