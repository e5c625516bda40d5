"""When a machine works: hours, and idleness."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from typing import IO

import psutil
import pytest

from gridx_worker.controls import BUSY_S, Gate, Load, parse_hours


def at(day: int, *time: int) -> datetime:
    """A time in January 2030; the 7th is a Monday."""
    hour, minute, second, *_ = *time, 0, 0, 0
    return datetime(2030, 1, day, hour, minute, second, tzinfo=UTC)


MONDAY = at(7)
SPIN = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print(os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
end = time.process_time() + 1
while time.process_time() < end: pass
print("spun", flush=True)
signal.pause()
"""


@contextlib.contextmanager
def start(*, is_child: bool) -> Generator[IO[str]]:
    """A process that says its id, spins for a second when it gets SIGUSR1, and says so: a child of this one, or nobody's any more."""
    command = [sys.executable, "-c", SPIN] if is_child else ["sh", "-c", '"$0" -c "$1" & exit', sys.executable, SPIN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if not is_child:
            process.wait()
        yield process.stdout


def busy() -> float:
    times = psutil.cpu_times()
    return sum(times[:8]) - times.idle - getattr(times, "iowait", 0.0)


class TestWorkingHours:
    @pytest.mark.parametrize(("text", "day", "hour", "expected"), [
        ("18:00-8:00", 7, 17, False), ("18:00-8:00", 7, 18, True), ("18:00-8:00", 8, 7, True), ("18:00-8:00", 8, 8, False),
        ("Sat-Sun", 11, 12, False), ("Sat-Sun", 12, 0, True), ("Sat-Sun", 13, 23, True), ("Sat-Sun", 14, 0, False),
        ("Fri-Mon 22:00-6:00", 14, 23, True), ("Fri-Mon 22:00-6:00", 15, 5, True), ("Fri-Mon 22:00-6:00", 15, 23, False),
        ("Mon 9:00-12:00, sun 0:00-24:00", 13, 15, True), ("Mon 9:00-12:00, sun 0:00-24:00", 14, 12, False), ("00:00-24:00", 9, 3, True),
    ])  # fmt: skip
    def test_is_open(self, text: str, day: int, hour: int, expected: bool) -> None:
        assert parse_hours(text).is_open(at(day, hour)) is expected

    def test_when_it_opens_next(self) -> None:
        hours = parse_hours("Mon-Fri 18:00-8:00, Sat 10:00-12:00")
        assert hours.opens_at(MONDAY.replace(hour=9)) == MONDAY.replace(hour=18)
        assert hours.opens_at(at(12, 9, 30, 20)) == at(12, 10)
        assert parse_hours("Sun 1:00-2:00").opens_at(at(13, 2)) == at(20, 1)

    @pytest.mark.parametrize(
        "text", ["", "noon", "25:00-26:00", "8:00-9:75", "Mo 8:00-9:00", "Mon..Fri", "8-9", "Mon 8:00", "Sat,,Sun", "xyz-sun"]
    )
    def test_nonsense_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"write|no time"):
            parse_hours(text)


class TestLoad:
    @pytest.mark.parametrize("whose", ["a child", "a container's process", "somebody else's"])
    def test_what_others_use_counts_and_what_grid_x_uses_does_not(self, whose: str) -> None:
        """A process spins for a second; on the test's own clock five pass. What else runs on this machine is in both sums."""
        times = iter([0.0, BUSY_S])
        pids: list[int] = []
        load = Load(lambda: pids if whose == "a container's process" else [], clock=lambda: next(times))
        with contextlib.ExitStack() as stack:
            process = stack.enter_context(start(is_child=whose == "a child"))
            pids.append(int(process.readline()))
            before = busy()
            assert load.share() == 0.0
            os.kill(pids[0], signal.SIGUSR1)
            assert process.readline() == "spun\n"
            share = load.share()
            all_busy = (busy() - before) / (BUSY_S * (psutil.cpu_count() or 1))
            os.kill(pids[0], signal.SIGKILL)
        own = 1.0 / (BUSY_S * (psutil.cpu_count() or 1))
        if whose == "somebody else's":
            assert share >= own * 0.9
        else:
            assert share <= all_busy - own * 0.8

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
