"""The standalone orchestrator's rules, with the time passed in."""

from collections.abc import Callable

import pytest

from gridx.core.errors import Invalid, NotAuthenticated
from gridx.orchestrator.room import Member, NameTaken, NoRankLeft, Over, Room


def come(room: Room, name: str, instance: str = "first", now: float = 0.0) -> Member:
    return room.register(name, instance, "", 0, now)


def beat(room: Room, member: Member, now: float, step: int = 1) -> str | None:
    return room.heartbeat(member.rank, member.session, now, epoch=1, step=step, loss=0.5, samples_per_s=None)


def full(size: int = 3, now: float = 0.0) -> tuple[Room, list[Member]]:
    room = Room(size)
    members = [come(room, f"w{number}", now=now) for number in range(size)]
    assert all(room.can_start(each.rank, each.session, now) for each in members)
    return room, members


class TestRegister:
    def test_ranks_go_by_arrival(self) -> None:
        room = Room(4)
        assert [come(room, name).rank for name in "dbca"] == [0, 1, 2, 3]

    def test_a_repeated_call_gets_the_same_rank_and_session(self) -> None:
        room = Room(2)
        first = come(room, "a")
        assert come(room, "a", now=3) is first
        assert come(room, "b").rank == 1

    @pytest.mark.parametrize("instance", ["another", ""])
    def test_a_replay_by_another_process_is_refused(self, instance: str) -> None:
        room = Room(2)
        come(room, "a")
        with pytest.raises(NameTaken, match="rank 0"):
            come(room, "a", instance)

    def test_one_too_many(self) -> None:
        room, _ = full(2)
        with pytest.raises(NoRankLeft, match="all 2"):
            come(room, "late")

    def test_who_falls_silent_before_the_start_gives_its_rank_to_the_next(self) -> None:
        room = Room(2)
        come(room, "a")
        other = come(room, "b", now=14)
        assert come(room, "c", now=16).rank == 0
        with pytest.raises(NoRankLeft):
            come(room, "d", now=16)
        assert beat(room, other, 17) is None

    def test_rank_0_may_say_where_it_listens(self) -> None:
        room = Room(1)
        assert room.master == ("127.0.0.1", 29500)
        room.register("a", "x", "10.0.0.7", 31000, 0)
        assert room.master == ("10.0.0.7", 31000)


class TestStart:
    def test_not_before_all_are_there(self) -> None:
        room = Room(2)
        first = come(room, "a")
        assert not room.can_start(0, first.session, 0)
        assert room.waiting_for() == "1 of 2 ranks have not come yet"
        second = come(room, "b")
        assert room.can_start(1, second.session, 0)
        assert room.can_start(0, first.session, 0)

    def test_ends_well_when_all_have_left(self) -> None:
        room, members = full(2)
        room.leave(0, members[0].session, 5)
        assert room.status == "TRAINING"
        room.leave(1, members[1].session, 5)
        assert room.status == "DONE"
        with pytest.raises(Over, match="ended"):
            come(room, "late")


class TestLoss:
    def test_one_that_falls_silent_stops_all(self) -> None:
        room, members = full(3)
        assert beat(room, members[0], 10) is None
        assert beat(room, members[1], 14) is None
        reason = beat(room, members[0], 16)
        assert reason is not None
        assert "rank 2 (w2) was not heard of" in reason
        assert room.status == "ABORTED"

    def test_one_that_gives_up_stops_all(self) -> None:
        room, members = full(2)
        room.abort(1, members[1].session, "out of memory", 1)
        assert beat(room, members[0], 1) == "rank 1 (w1) gave up: out of memory"

    def test_one_that_has_left_is_not_missed(self) -> None:
        room, members = full(2)
        room.leave(1, members[1].session, 1)
        assert beat(room, members[0], 10) is None
        assert beat(room, members[0], 20) is None


class TestStrangers:
    @pytest.mark.parametrize(
        "call",
        [
            lambda room, rank, session: room.heartbeat(rank, session, 0, epoch=0, step=0, loss=None, samples_per_s=None),
            lambda room, rank, session: room.can_start(rank, session, 0),
            lambda room, rank, session: room.leave(rank, session, 0),
            lambda room, rank, session: room.abort(rank, session, "", 0),
        ],
    )
    def test_a_rank_is_its_sessions_alone(self, call: Callable[[Room, int, str], object]) -> None:
        room, members = full(2)
        for rank, session in ((0, members[1].session), (0, ""), (1, "é")):
            with pytest.raises(NotAuthenticated):
                call(room, rank, session)
        for rank in (2, 2**32 - 1, -1):
            with pytest.raises(Invalid, match="out of range"):
                call(room, rank, members[0].session)
        assert room.status == "TRAINING"
