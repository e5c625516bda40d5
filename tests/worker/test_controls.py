"""When a machine works: hours, and idleness."""

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime

import psutil
import pytest

from gridx_worker.controls import BUSY_S, Gate, Load, parse_hours

MONDAY = datetime(2030, 1, 7)
SPIN = "import time\nend = time.process_time() + {0}\nwhile time.process_time() < end: pass\nprint('spun', flush=True)\ninput()"


class TestWorkingHours:
    @pytest.mark.parametrize(("text", "day", "hour", "expected"), [
        ("18:00-8:00", 7, 17, False), ("18:00-8:00", 7, 18, True), ("18:00-8:00", 8, 7, True), ("18:00-8:00", 8, 8, False),
        ("Sat-Sun", 11, 12, False), ("Sat-Sun", 12, 0, True), ("Sat-Sun", 13, 23, True), ("Sat-Sun", 14, 0, False),
        ("Fri-Mon 22:00-6:00", 14, 23, True), ("Fri-Mon 22:00-6:00", 15, 5, True), ("Fri-Mon 22:00-6:00", 15, 23, False),
        ("Mon 9:00-12:00, sun 0:00-24:00", 13, 15, True), ("Mon 9:00-12:00, sun 0:00-24:00", 14, 12, False), ("00:00-24:00", 9, 3, True),
    ])  # fmt: skip
    def test_is_open(self, text: str, day: int, hour: int, expected: bool) -> None:
        assert parse_hours(text).is_open(datetime(2030, 1, day, hour)) is expected

    def test_when_it_opens_next(self) -> None:
        hours = parse_hours("Mon-Fri 18:00-8:00, Sat 10:00-12:00")
        assert hours.opens_at(MONDAY.replace(hour=9)) == MONDAY.replace(hour=18)
        assert hours.opens_at(datetime(2030, 1, 12, 9, 30, 20)) == datetime(2030, 1, 12, 10)
        assert parse_hours("Sun 1:00-2:00").opens_at(datetime(2030, 1, 13, 2)) == datetime(2030, 1, 20, 1)

    @pytest.mark.parametrize("text", ["", "noon", "25:00-26:00", "8:00-9:75", "Mo 8:00-9:00", "Mon..Fri", "8-9", "Mon 8:00", "Sat,,Sun", "xyz-sun"])
    def test_nonsense_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"write|no time"):
            parse_hours(text)


class TestLoad:
    def measure(self, roots: Callable[[int], list[int]]) -> float:
        """The share that a process is found to use which spins for a second, on a clock of the test's own."""
        times = iter([0.0, BUSY_S + 0.1])
        with subprocess.Popen([sys.executable, "-c", SPIN.format(1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            load = Load(lambda: roots(process.pid), clock=lambda: next(times))
            assert load.share() == 0.0
            assert process.stdout is not None
            process.stdout.readline()
            share = load.share()
            process.communicate(b"\n")
        return share

    def test_what_others_use_counts_and_what_grid_x_uses_does_not(self) -> None:
        # The spinner is a child of this process, as a script of the process sandbox is one of the agent's.
        before = sum(psutil.cpu_times()[:3])
        ours = self.measure(lambda pid: [])
        other_load = (sum(psutil.cpu_times()[:3]) - before - 1.0) / (BUSY_S * (psutil.cpu_count() or 1))
        assert ours <= max(other_load, 0.0) + 0.1

    def test_looks_in_between_repeat_the_last_answer(self) -> None:
        times = iter([0.0, 1.0, 2.0])
        load = Load(list, clock=lambda: next(times))
        assert [load.share(), load.share(), load.share()] == [0.0, 0.0, 0.0]


class FixedLoad(Load):
    def __init__(self, share: float) -> None:
        self.value = share

    def share(self) -> float:
        return self.value


class TestGate:
    def test_outside_its_hours(self) -> None:
        gate = Gate(hours=parse_hours("18:00-8:00"), most_busy=None, load=FixedLoad(1.0), now=lambda: MONDAY.replace(hour=9))
        assert gate.why_closed() == "its working hours are 18:00-8:00; the next begin on Mon at 18:00"

    def test_while_others_use_the_machine(self) -> None:
        gate = Gate(hours=None, most_busy=0.25, load=(load := FixedLoad(0.6)), now=lambda: MONDAY)
        assert gate.why_closed() == "others use 60% of its cores; it works while they use at most 25%"
        load.value = 0.1
        assert gate.why_closed() is None

    def test_without_either_it_is_open(self) -> None:
        assert Gate(hours=None, most_busy=None, load=FixedLoad(1.0)).why_closed() is None
