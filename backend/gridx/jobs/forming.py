"""Gang scheduling: all places of a gang are reserved in one transaction, or none.

No gang ever holds a part of what it needs, so no two can wait for each other. A reservation whose members do not come in time ends and
frees the others. Ordinary subtasks go on meanwhile: ranks run in slots of their own. Imported by the orchestrator and by views.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, exists, func, insert, select
from sqlalchemy.orm import Session, aliased

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.core.db import table_of
from gridx.core.lease import new_lease_token
from gridx.core.settings import Settings
from gridx.jobs.gang_models import LIVE, Checkpoint, Gang, Member, RankSlot
from gridx.jobs.gangs import break_gang, end_badly
from gridx.jobs.models import Attempt, Job, Subtask
from gridx.jobs.states import lock_job, move, record
from gridx.jobs.suited import meets_needs, takes_work

REGISTER_S: Final = 30.0
"""A reserved agent has to come for its rank within this time."""
READY_S: Final = 900.0
"""And to have its files and packages within this."""
ASKED_S: Final = 60.0
"""A slot is offered as long as its agent asked within this time; one that is kept waiting asks anew every half minute."""
STRAGGLER_S: Final = 60.0
"""How long the other ranks may go on once rank 0's model is accepted."""
PATIENCE_S: Final = 300.0
"""A gang that waits longer than this is not overtaken any more by younger ones that need the same agents."""
_LONGEST_PAUSE_S: Final = 30.0


@dataclass(frozen=True)
class Place:
    """A free slot of an agent."""

    agent_id: str
    seller_id: int
    slot: int
    address: str


def waiting_jobs(session: Session) -> Sequence[Job]:
    """Synchronous jobs that have no gang, the oldest first."""
    is_live = exists().where(Gang.job_id == Job.id, Gang.status.in_(LIVE))
    return session.scalars(select(Job).where(Job.mode == "ddp", Job.status == "RUNNING", ~is_live).order_by(Job.id)).all()


def form_next(session: Session, now: datetime, settings: Settings) -> Gang | None:
    """Reserve a gang for the first waiting job that all needed places are free for. None when there is none.

    Raises IntegrityError when another process took one of the places meanwhile: the transaction is to be given up.
    """
    kept: set[str] = set()
    for job in waiting_jobs(session):
        if now < _not_before(session, job):
            continue
        free = free_places(session, job, now, settings.offline_after_s)
        chosen = _choose(job, {name: [each for each in places if each.agent_id not in kept] for name, places in free.items()})
        if chosen is not None:
            return _reserve(session, job.id, *chosen, now, settings)
        if (now - _waiting_since(session, job)).total_seconds() > PATIENCE_S:
            kept |= {place.agent_id for places in free.values() for place in places}
    return None


def look_after(session: Session, now: datetime) -> int:
    """End gangs whose members did not come, or did not get ready, in time. Returns how many."""
    late = session.execute(
        select(Gang.id, Gang.job_id)
        .where(Gang.status == "FORMING", (Gang.register_until < now) | (Gang.ready_until < now))
        .order_by(Gang.job_id)
    ).all()
    ended = 0
    for gang_id, job_id in late:
        job = lock_job(session, job_id)
        gang = session.get_one(Gang, gang_id, populate_existing=True)
        if gang.status != "FORMING":
            continue
        missing = Member.registered_at.is_(None) if gang.ready_until >= now else Member.ready_at.is_(None)
        rows = session.execute(
            select(Attempt, Member.rank)
            .join(Member, Member.attempt_id == Attempt.id)
            .where(Member.gang_id == gang_id, missing, Attempt.status == "RUNNING")
            .order_by(Member.rank)
        ).all()
        if not rows:
            continue
        names = ", ".join(f"rank {rank} ({attempt.agent_id})" for attempt, rank in rows)
        words = f"{names} did not {'come' if gang.ready_until >= now else 'get ready'} in time"
        for attempt, _ in rows:
            attempt.status, attempt.fault, attempt.reason, attempt.finished_at = "LOST", "late", words, now
        session.flush()
        break_gang(session, job, gang, rows[0][0], "late", words, now)
        ended += 1
    return ended


def dismiss_stragglers(session: Session, now: datetime) -> int:
    """End ranks that go on long after rank 0's model was accepted: they hang at their end, and the job would wait for them. How many."""
    first, first_member = aliased(Attempt), aliased(Member)
    rows = session.execute(
        select(Attempt.id, Attempt.job_id)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Gang, Gang.id == Member.gang_id)
        .join(first_member, (first_member.gang_id == Gang.id) & (first_member.rank == 0))
        .join(first, first.id == first_member.attempt_id)
        .where(Gang.status == "TRAINING", Attempt.status == "RUNNING", first.status == "ACCEPTED")
        .where(first.finished_at < now - timedelta(seconds=STRAGGLER_S))
        .order_by(Attempt.job_id, Attempt.id)
    ).all()
    ended = 0
    for attempt_id, job_id in rows:
        job = lock_job(session, job_id)
        attempt = session.get_one(Attempt, attempt_id, populate_existing=True)
        if attempt.status != "RUNNING":
            continue
        words = f"it had not ended {STRAGGLER_S:.0f} s after rank 0's model was verified"
        subtask = session.get_one(Subtask, attempt.subtask_id, populate_existing=True)
        end_badly(session, job, subtask, attempt, "LOST", "late", words, now)
        ended += 1
    return ended


def free_places(session: Session, job: Job, now: datetime, offline_after_s: float) -> dict[str, list[Place]]:
    """Free slots of agents that take work and meet the job's needs, by the network in which agents reach one another."""
    return _places(session, job, now, offline_after_s, _is_free(now))


def all_places(session: Session, job: Job, now: datetime, offline_after_s: float) -> dict[str, list[Place]]:
    """The same, as if nobody was at work."""
    return _places(session, job, now, offline_after_s, _is_offered(now))


def offered(session: Session, now: datetime, offline_after_s: float) -> int:
    """Slots of all agents online, whatever a job needs."""
    statement = select(func.count()).select_from(RankSlot).join(Agent, Agent.id == RankSlot.agent_id)
    return session.scalar(statement.where(agents.is_online(now, offline_after_s), _is_offered(now))) or 0


def _places(session: Session, job: Job, now: datetime, offline_after_s: float, *conditions: ColumnElement[bool]) -> dict[str, list[Place]]:
    rows = session.execute(
        select(RankSlot, Agent.owner_id)
        .join(Agent, Agent.id == RankSlot.agent_id)
        .where(agents.is_online(now, offline_after_s), *takes_work(now), *meets_needs(job), *conditions)
        .order_by(RankSlot.agent_id, RankSlot.slot)
    ).all()
    found: dict[str, list[Place]] = defaultdict(list)
    for slot, owner_id in rows:
        found[slot.place].append(Place(slot.agent_id, owner_id, slot.slot, slot.address))
    return found


def _is_offered(now: datetime) -> ColumnElement[bool]:
    """Whether a slot asks for ranks, or is at work on one."""
    return (RankSlot.asked_at > now - timedelta(seconds=ASKED_S)) | _at_work(Attempt.status == "RUNNING")


def _is_free(now: datetime) -> ColumnElement[bool]:
    """Whether it asked lately, and since it ended its last rank: an agent that lost one, or still clears up, has not."""
    return (RankSlot.asked_at > now - timedelta(seconds=ASKED_S)) & ~_at_work(
        (Attempt.status == "RUNNING") | (Attempt.finished_at > RankSlot.asked_at)
    )


def _at_work(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(Attempt.agent_id == RankSlot.agent_id, Attempt.slot == RankSlot.slot, condition)


def _choose(job: Job, free: dict[str, list[Place]]) -> tuple[str, list[Place]] | None:
    """Places of one network, one on each agent before a second on any: memory and cores are each agent's own."""
    for name, places in sorted(free.items(), key=lambda item: len(item[1])):
        if len(places) >= job.chunks:
            turns: dict[str, int] = defaultdict(int)
            ordered: list[tuple[int, str, Place]] = []
            for place in places:
                ordered.append((turns[place.agent_id], place.agent_id, place))
                turns[place.agent_id] += 1
            chosen = [place for _, _, place in sorted(ordered, key=lambda item: item[:2])[: job.chunks]]
            return name, sorted(chosen, key=lambda place: (place.agent_id, place.slot))
    return None


def _reserve(session: Session, job_id: int, network: str, places: Sequence[Place], now: datetime, settings: Settings) -> Gang | None:
    job = lock_job(session, job_id)
    subtasks = session.scalars(
        select(Subtask)
        .where(Subtask.job_id == job.id, Subtask.kind == "rank")
        .order_by(Subtask.chunk_index)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    if job.status != "RUNNING" or any(subtask.status != "PENDING" for subtask in subtasks) or len(subtasks) != len(places):
        return None
    number = (session.scalar(select(func.max(Gang.number)).where(Gang.job_id == job.id)) or 0) + 1
    gang = Gang(
        job_id=job.id,
        number=number,
        status="FORMING",
        place=network,
        secret=secrets.token_hex(16),
        checkpoint_id=latest_checkpoint(session, job.id),
        created_at=now,
        register_until=now + timedelta(seconds=REGISTER_S),
        ready_until=now + timedelta(seconds=min(READY_S, job.time_limit_s)),
    )
    session.add(gang)
    session.flush()
    _add_members(session, job, gang, subtasks, places, now, settings)
    text = f"gang {number}: {len(places)} places are reserved on {_list(dict.fromkeys(place.agent_id for place in places))}"
    if gang.checkpoint_id is not None:
        text += "; it starts from the last checkpoint"
    record(session, job.id, now=now, what="round", new="FORMING", text=text)
    return gang


def _add_members(
    session: Session, job: Job, gang: Gang, subtasks: Sequence[Subtask], places: Sequence[Place], now: datetime, settings: Settings
) -> None:
    turns: dict[str, int] = defaultdict(int)
    for subtask, place in zip(subtasks, places, strict=True):
        made = subtask.attempts_made + 1
        text = f"rank {subtask.chunk_index} went to {place.agent_id}"
        move(session, subtask, "RUNNING", now=now, text=text, attempts_made=made, not_before=None)
        row = {
            "job_id": job.id,
            "buyer_id": job.owner_id,
            "subtask_id": subtask.id,
            "agent_id": place.agent_id,
            "seller_id": place.seller_id,
            "slot": place.slot,
            "number": made,
            "is_backup": False,
            "status": "RUNNING",
            "lease_token": new_lease_token(),
            "lease_expires_at": now + timedelta(seconds=max(settings.lease_s, REGISTER_S)),
            "deadline_at": now + timedelta(seconds=job.time_limit_s),
            "upload_key": f"jobs/{job.id}/uploads/{secrets.token_hex(8)}.pth",
            "paid": 0,
            "started_at": now,
            "work_failures": 0,
        }
        attempts = table_of(Attempt)
        attempt_id = session.connection().execute(insert(attempts).returning(attempts.c.id), row).scalar_one()
        session.add(
            Member(
                attempt_id=attempt_id, gang_id=gang.id, rank=subtask.chunk_index, local_rank=turns[place.agent_id], address=place.address
            )
        )
        turns[place.agent_id] += 1
    session.flush()


def latest_checkpoint(session: Session, job_id: int) -> int | None:
    """The last one that was checked: of the latest gang that has any."""
    return session.scalar(
        select(Checkpoint.id)
        .where(Checkpoint.job_id == job_id, Checkpoint.status == "SEALED", Checkpoint.key.is_not(None))
        .order_by(Checkpoint.gang_id.desc(), Checkpoint.number.desc())
        .limit(1)
    )


def _not_before(session: Session, job: Job) -> datetime:
    """The end of the pause after gangs that broke: it grows with each."""
    ends = [end for end in session.scalars(select(Gang.ended_at).where(Gang.job_id == job.id, Gang.status == "BROKEN")) if end]
    return max(ends) + timedelta(seconds=min(2.0 ** (len(ends) - 1), _LONGEST_PAUSE_S)) if ends else job.created_at


def _waiting_since(session: Session, job: Job) -> datetime:
    return session.scalar(select(func.max(Gang.ended_at)).where(Gang.job_id == job.id)) or job.created_at


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
