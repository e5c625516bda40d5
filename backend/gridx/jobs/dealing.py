"""Work dealt to many waiting agents at once: a job's start or a new round costs a dozen statements, however many subtasks it brings.

Only subtasks that nobody has tried yet are dealt. One that failed or was dropped has a history with sellers, which an ordinary claim
weighs: waiting agents that might get it are told to ask.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import and_, bindparam, case, func, insert, literal, select
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.db import Database, table_of
from gridx.core.lease import new_lease_token
from gridx.core.settings import Settings
from gridx.jobs.claims import Claim, attempt_row, described, is_due, is_open
from gridx.jobs.models import Attempt, Job, Subtask
from gridx.jobs.states import Seen, move_all

_log = structlog.get_logger()
_MAX_DEALT: Final = 250
"""Subtasks of one transaction; the rest comes with the next."""
_SPARE: Final = 10
"""Agents that are looked at beyond what is there to deal: some may just be served by another call."""


@dataclass(eq=False)
class Waiting:
    """An agent that waits for work."""

    agent: AgentActor
    warm_job_ids: Collection[int] = ()
    may_ask: bool = True
    """False while it has just asked for what is left, in vain."""


@dataclass
class Dealt:
    """Who of the waiting got what, by agent, and who should ask."""

    claims: dict[str, Claim] = field(default_factory=dict[str, Claim])
    to_ask: set[str] = field(default_factory=set[str])
    is_more: bool = False
    """Whether there was more to deal than one transaction takes."""


@dataclass(frozen=True)
class _DueJob:
    """A job that has work now: `fresh` subtasks that nobody tried yet, and others."""

    id: int
    owner_id: int
    current_round: int
    ram_bytes: int
    gpus: int
    vram_bytes: int
    is_recipe: bool
    fresh: int
    others: int

    def suits(self, agent: AgentActor) -> bool:
        if agent.accepts != "all" and not self.is_recipe:
            return False
        return agent.ram_bytes >= self.ram_bytes and agent.gpu_count >= self.gpus and agent.vram_bytes >= self.vram_bytes


def deal(database: Database, line: Sequence[Waiting], now: datetime, settings: Settings) -> Dealt:
    """Give the waiting what is there, first come first served. Writes only when there is something for somebody."""
    dealt = Dealt()
    with database.read() as session:
        due = [_DueJob(*row) for row in session.connection().execute(_DUE, {"now": now})]
        failed_here = _barred(session, [job.id for job in due if job.others])
        working = set(session.connection().scalars(_WORKING)) if due else set[str]()
    waiting: dict[str, Waiting] = {}
    for one in line:
        if not one.agent.is_quarantined(now) and one.agent.id not in working:
            waiting.setdefault(one.agent.id, one)
    for job in due:
        suited = [one for one in waiting.values() if job.others and one.may_ask and job.suits(one.agent)]
        suited.sort(key=lambda one: (job.id, one.agent.owner_id) in failed_here)
        for one in suited[: job.others]:
            dealt.to_ask.add(one.agent.id)
            del waiting[one.agent.id]
    fresh = [job for job in due if job.fresh]
    most = min(sum(job.fresh for job in fresh), _MAX_DEALT)
    takers = [one for one in waiting.values() if any(job.suits(one.agent) for job in fresh)]
    if takers:
        with database.write() as session:
            dealt.claims = _deal(session, fresh, takers[: most + _SPARE], now, settings)
        dealt.is_more = len(dealt.claims) >= _MAX_DEALT
    return dealt


def _deal(session: Session, due: Sequence[_DueJob], takers: Sequence[Waiting], now: datetime, settings: Settings) -> dict[str, Claim]:
    connection = session.connection()
    # The agents first, as every claim does it. Who is locked, or holds an attempt, is being served by another call.
    free = agents.lock_free(session, [one.agent.token_hash for one in takers if one.agent.token_hash is not None])
    for agent_id in connection.scalars(_BUSY, {"agents": list(free)}).all():
        del free[agent_id]
    running: Counter[int] = Counter(dict(connection.execute(_RUNNING).all()))
    left = {job.id: job.fresh for job in due}
    hands: dict[int, list[Waiting]] = {}
    for one in takers:
        agent = free.get(one.agent.id)
        suited = [job for job in due if left[job.id] and job.suits(agent)] if agent is not None and not agent.is_quarantined(now) else []
        if suited:
            job = min(suited, key=lambda job: (running[job.owner_id], job.id not in one.warm_job_ids, job.id))
            hands.setdefault(job.id, []).append(one)
            left[job.id] -= 1
            running[job.owner_id] += 1
    claims: dict[str, Claim] = {}
    for job in due:
        claims |= _deal_job(session, job, hands.get(job.id, []), now, settings)
    return claims


def _deal_job(session: Session, job: _DueJob, takers: Sequence[Waiting], now: datetime, settings: Settings) -> dict[str, Claim]:
    if not takers:
        return {}
    connection = session.connection()
    chunks = dict(connection.execute(_FRESH, {"job": job.id, "now": now}).all())
    known = _known_chunks(session, job, takers)
    hands = dict(_match(chunks, takers, known))
    picked = connection.execute(_PICK, {"ids": list(hands), "now": now}).mappings().all()
    claims = {
        hands[row["subtask_id"]].agent.id: Claim(
            **row, lease_token=new_lease_token(), deadline_at=now + timedelta(seconds=row["time_limit_s"])
        )
        for row in picked
    }
    if not claims:
        return {}
    actors = {one.agent.id: one.agent for one in takers}
    steps = [
        (Seen(claim.subtask_id, job.id, "PENDING"), f"chunk {claim.chunk_index} of round {claim.round_number} went to {agent_id}")
        for agent_id, claim in claims.items()
    ]
    move_all(session, steps, "RUNNING", now=now, attempts_made=1, not_before=None)
    connection.execute(_BEGIN, [attempt_row(claim, actors[agent_id], now, settings) for agent_id, claim in claims.items()])
    _log.info("dealt", job=job.id, subtasks={claim.subtask_id: agent_id for agent_id, claim in claims.items()})
    return claims


def _match(chunks: dict[int, int], takers: Sequence[Waiting], known: set[tuple[str, int]]) -> Iterable[tuple[int, Waiting]]:
    """Pairs of subtask and agent. `chunks` tells the chunk of each subtask; one that an agent trained on before goes to it."""
    left, others = dict(chunks), list[Waiting]()
    for one in takers:
        mine = next((task for task, chunk in left.items() if (one.agent.id, chunk) in known), None) if known else None
        if mine is None:
            others.append(one)
        else:
            del left[mine]
            yield mine, one
    yield from zip(left, others, strict=False)


def _known_chunks(session: Session, job: _DueJob, takers: Sequence[Waiting]) -> set[tuple[str, int]]:
    if job.current_round <= 1:
        return set()
    found = session.connection().execute(_KNOWN, {"job": job.id, "agents": [one.agent.id for one in takers]})
    return {(agent_id, chunk) for agent_id, chunk in found}


def _barred(session: Session, job_ids: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of job and seller who failed or dropped one of the job's open subtasks: others are asked first."""
    if not job_ids:
        return set()
    return {(job_id, seller_id) for job_id, seller_id in session.connection().execute(_FAILED_BY, {"jobs": list(job_ids)})}


_subtasks, _attempts, _jobs = (table_of(model) for model in (Subtask, Attempt, Job))
_is_fresh = and_(_subtasks.c.status == "PENDING", _subtasks.c.kind == "train", _subtasks.c.attempts_made == 0)
_fresh_count = func.coalesce(func.sum(case((_is_fresh, 1), else_=0)), 0)
_DUE = (
    select(
        _jobs.c.id,
        _jobs.c.owner_id,
        _jobs.c.current_round,
        _jobs.c.needs_ram_bytes,
        _jobs.c.needs_gpus,
        _jobs.c.needs_vram_bytes,
        _jobs.c.recipe.is_not(None).label("is_recipe"),
        _fresh_count.label("fresh"),
        (func.count() - _fresh_count).label("others"),
    )
    .join(_subtasks, _subtasks.c.job_id == _jobs.c.id)
    .where(_jobs.c.status == "RUNNING", is_open(bindparam("now")))
    .group_by(_jobs.c.id)
    .order_by(_jobs.c.id)
)
_FAILED_BY = (
    select(_attempts.c.job_id, _attempts.c.seller_id)
    .join(_subtasks, _subtasks.c.id == _attempts.c.subtask_id)
    .where(
        _attempts.c.job_id.in_(bindparam("jobs", expanding=True)),
        _subtasks.c.status == "PENDING",
        _attempts.c.status.in_(("FAILED", "REFUSED", "LOST")),
    )
    .distinct()
)
_BUSY = select(_attempts.c.agent_id).where(
    _attempts.c.agent_id.in_(bindparam("agents", expanding=True)), _attempts.c.slot == 0, _attempts.c.status == "RUNNING"
)
_WORKING = select(_attempts.c.agent_id).where(_attempts.c.slot == 0, _attempts.c.status == "RUNNING")
_RUNNING = select(_attempts.c.buyer_id, func.count()).where(_attempts.c.status == "RUNNING").group_by(_attempts.c.buyer_id)
_FRESH = (
    select(_subtasks.c.id, _subtasks.c.chunk_index)
    .where(_subtasks.c.job_id == bindparam("job"), _is_fresh, is_due(bindparam("now")))
    .order_by(_subtasks.c.id)
)
_KNOWN = (
    select(_attempts.c.agent_id, _subtasks.c.chunk_index)
    .join(_subtasks, _subtasks.c.id == _attempts.c.subtask_id)
    .where(_attempts.c.job_id == bindparam("job"), _attempts.c.agent_id.in_(bindparam("agents", expanding=True)))
    .distinct()
)
_PICK = described(
    select(_subtasks)
    .where(_subtasks.c.id.in_(bindparam("ids", expanding=True)), _is_fresh, is_due(bindparam("now")))
    .with_for_update(skip_locked=True, of=_subtasks)
    .cte("picked")
).add_columns(literal(1).label("number"), literal(False).label("is_beside"), literal(False).label("is_backup"))
_BEGIN = insert(_attempts).inline()
