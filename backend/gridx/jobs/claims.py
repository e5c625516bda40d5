"""Claims: which subtask an agent gets. The contested path, so its statements are built once and load no objects.

On PostgreSQL the subtask's row is locked with SKIP LOCKED, on SQLite the session is the only writer. A claim never writes to the job's
row: who holds that lock may be waiting for this subtask.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    String,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.db import table_of
from gridx.core.lease import new_lease_token
from gridx.core.settings import Settings
from gridx.datasets.models import Chunk
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import Seen, label, move, record
from gridx.jobs.suited import suited_sellers

_log = structlog.get_logger()
_MAX_JOBS: Final = 1000
"""Jobs that one request looks at."""
_BARS: Final = ("FAILED", "REFUSED")
_MOST_LOSSES: Final = 2
"""Attempts at one subtask that a seller may lose before others go first: whoever takes work and drops it cannot use up its attempts."""
_OTHERS_PATIENCE_S: Final = 120.0
"""How long a subtask waits for another seller than those who failed it: one may be online and never ask."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent needs in order to run an attempt; the router adds the signed links."""

    subtask_id: int
    kind: str
    job_id: int
    owner_id: int
    round_number: int
    chunk_index: int
    rows: int
    title: str
    script_key: str
    script_sha256: str
    requirements_key: str | None
    schema_key: str | None
    arguments: list[str]
    hyperparameters: dict[str, Any]
    strategy: str
    strategy_options: dict[str, Any]
    rounds: int
    chunks: int
    job_seed: int
    needs: dict[str, Any]
    time_limit_s: int
    chunk_key: str
    chunk_sha256: str
    chunk_bytes: int
    global_model_key: str | None
    global_model_sha256: str | None
    number: int
    is_beside: bool
    """Whether it begins while another attempt goes on."""
    is_backup: bool
    lease_token: str
    deadline_at: datetime


def claim(session: Session, agent: AgentActor, warm_job_ids: Sequence[int], now: datetime, settings: Settings) -> Claim | None:
    """Give an agent work, or the attempt that it already holds: its reply was lost. None when nothing suits."""
    agents.lock(session, agent.id, now)
    connection = session.connection()
    if (held := held_claim(session, agent, 0, now, settings)) is not None:
        return held
    if agent.is_quarantined(now):
        return None
    for job_id, current_round in connection.execute(_JOBS_IN_ORDER, _wishes(agent, warm_job_ids, now)).all():
        picked = _pick(session, connection, agent, job_id, current_round, now, settings)
        if picked is not None:
            return _begin(session, connection, agent, picked, now, settings)
    return None


def held_claim(session: Session, agent: AgentActor, slot: int, now: datetime, settings: Settings) -> Claim | None:
    """What an agent works on in one of its slots, its lease extended."""
    if not holds_attempt(session, agent, slot):
        return None
    which, connection = {"agent": agent.id, "held_slot": slot}, session.connection()
    connection.execute(_RENEW, which | {"expires_at": now + timedelta(seconds=settings.lease_s)})
    return Claim(**connection.execute(_HELD, which).mappings().one())


def holds_attempt(session: Session, agent: AgentActor, slot: int = 0) -> bool:
    return session.connection().scalar(_HOLDS, {"agent": agent.id, "held_slot": slot}) is not None


def is_open(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    """Whether a subtask may be handed out at `now`: it waits, or it is late and a second machine may try."""
    waits = or_(and_(_subtasks.c.status == "PENDING", is_due(now)), and_(_subtasks.c.status == "RUNNING", _subtasks.c.wants_backup))
    return and_(_subtasks.c.kind != "rank", waits)  # ranks are handed out together: see forming.py


def is_due(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    """Whether a PENDING subtask may be handed out at `now`."""
    return or_(_subtasks.c.not_before.is_(None), _subtasks.c.not_before <= now)


def attempt_row(claim: Claim, agent: AgentActor, now: datetime, settings: Settings) -> dict[str, Any]:
    """The attempt that a claim begins."""
    return {
        "job_id": claim.job_id,
        "buyer_id": claim.owner_id,
        "subtask_id": claim.subtask_id,
        "agent_id": agent.id,
        "seller_id": agent.owner_id,
        "slot": 0,
        "number": claim.number,
        "is_backup": claim.is_backup,
        "status": "RUNNING",
        "lease_token": claim.lease_token,
        "lease_expires_at": now + timedelta(seconds=settings.lease_s),
        "deadline_at": claim.deadline_at,
        "upload_key": f"jobs/{claim.job_id}/uploads/{secrets.token_hex(8)}.pth",
        "paid": 0,
        "started_at": now,
        "work_failures": 0,
    }


def _wishes(agent: AgentActor, warm_job_ids: Sequence[int], now: datetime) -> dict[str, Any]:
    return {
        "warm": list(warm_job_ids),
        "ram": agent.ram_bytes,
        "gpus": agent.gpu_count,
        "vram": agent.vram_bytes,
        "now": now,
        "accepts": agent.accepts,
    }


def _pick(
    session: Session, connection: Connection, agent: AgentActor, job_id: int, current_round: int, now: datetime, settings: Settings
) -> RowMapping | None:
    """Lock one subtask of a job for this agent. Chunks it trained before come first; those its seller failed wait for another seller."""
    values = {"job": job_id, "agent": agent.id, "seller": agent.owner_id, "now": now}
    for statement in (_PICK_KNOWN, _PICK, _PICK_BACKUP) if current_round > 1 else (_PICK, _PICK_BACKUP):
        if (picked := connection.execute(statement, values).mappings().one_or_none()) is not None:
            return picked
    # What is left has failed at this seller's. It may have it again when every seller who could do it has failed it as well, or none came.
    suited = suited_sellers(session, session.get_one(Job, job_id), now, settings.offline_after_s) | {agent.owner_id}
    barred = (
        select(_attempts.c.subtask_id, _attempts.c.seller_id)
        .join(_subtasks, _subtasks.c.id == _attempts.c.subtask_id)
        .where(_subtasks.c.job_id == job_id, _subtasks.c.status == "PENDING", _attempts.c.seller_id.in_(suited))
        .group_by(_attempts.c.subtask_id, _attempts.c.seller_id)
        .having(_losses() >= _MOST_LOSSES)
        .subquery()
    )
    by_all = select(barred.c.subtask_id).group_by(barred.c.subtask_id).having(func.count() >= len(suited))
    has_waited = _subtasks.c.not_before <= now - timedelta(seconds=_OTHERS_PATIENCE_S)
    return connection.execute(_picking(or_(_subtasks.c.id.in_(by_all), has_waited)), values).mappings().one_or_none()


def _begin(session: Session, connection: Connection, agent: AgentActor, picked: RowMapping, now: datetime, settings: Settings) -> Claim:
    made = Claim(**picked, lease_token=new_lease_token(), deadline_at=now + timedelta(seconds=picked["time_limit_s"]))
    if made.is_beside:
        connection.execute(_SECOND, {"guarded_id": made.subtask_id, "number": made.number})
        text = f"{label(made)} of round {made.round_number} is late; {agent.id} tries it as well"
        record(session, made.job_id, now=now, what="attempt", new="BACKUP", text=text, subtask_id=made.subtask_id)
    else:
        seen = Seen(made.subtask_id, made.job_id, "PENDING")
        text = f"{label(made)} of round {made.round_number} went to {agent.id}"
        move(session, seen, "RUNNING", now=now, text=text, attempts_made=made.number, not_before=None)
    attempt_id = connection.execute(_BEGIN, attempt_row(made, agent, now, settings)).scalar_one()
    _log.info("assigned", job=made.job_id, subtask=made.subtask_id, attempt=attempt_id, agent=agent.id)
    return made


# The statements. Core tables, not mapped classes: nothing is loaded, and nothing but the parameters changes from call to call.

_subtasks, _attempts, _jobs, _chunks, _rounds = (table_of(model) for model in (Subtask, Attempt, Job, Chunk, Round))


def _losses() -> ColumnElement[int]:
    """What a group of attempts counts against its seller."""
    weight = case((_attempts.c.status.in_(_BARS), _MOST_LOSSES), (_attempts.c.status == "LOST", 1), else_=0)
    return func.coalesce(func.sum(weight), 0)


def described(task: Any) -> Select[*tuple[Any, ...]]:
    """Everything a Claim says about `task`, a subtask: a statement to be told about the attempt."""
    before = case((task.c.kind == "evaluate", 0), else_=1)  # what is evaluated is the round's own model
    start = and_(_rounds.c.job_id == task.c.job_id, _rounds.c.number == task.c.round_number - before)
    chunk = and_(_chunks.c.job_id == task.c.job_id, _chunks.c.index == task.c.chunk_index)
    return (
        select(
            task.c.id.label("subtask_id"),
            task.c.kind,
            task.c.job_id,
            task.c.round_number,
            task.c.chunk_index,
            task.c.rows,
            _jobs.c.owner_id,
            _jobs.c.title,
            _jobs.c.script_key,
            _jobs.c.script_sha256,
            _jobs.c.requirements_key,
            _jobs.c.schema_key,
            _jobs.c.arguments,
            _jobs.c.hyperparameters,
            _jobs.c.strategy,
            _jobs.c.strategy_options,
            _jobs.c.rounds,
            _jobs.c.chunks,
            _jobs.c.seed.label("job_seed"),
            _jobs.c.needs,
            _jobs.c.time_limit_s,
            _chunks.c.object_key.label("chunk_key"),
            _chunks.c.sha256.label("chunk_sha256"),
            _chunks.c.bytes.label("chunk_bytes"),
            _rounds.c.global_model_key,
            _rounds.c.global_model_sha256,
        )
        .join_from(task, _jobs, _jobs.c.id == task.c.job_id)
        .join(_chunks, chunk)
        .outerjoin(_rounds, start)
    )


def _picking(condition: ColumnElement[bool], *, late: bool = False) -> Select[*tuple[Any, ...]]:
    """Locks the first PENDING subtask of :job for which `condition` holds, or the first late one, and describes it."""
    waits = and_(_subtasks.c.status == "RUNNING", _subtasks.c.wants_backup) if late else _subtasks.c.status == "PENDING"
    # A second evaluation of a model is another seller's.
    sibling = _subtasks.alias()
    evaluated_by_seller = (
        select(_attempts.c.id)
        .join(sibling, sibling.c.id == _attempts.c.subtask_id)
        .where(
            sibling.c.round_id == _subtasks.c.round_id,
            sibling.c.kind == "evaluate",
            _attempts.c.seller_id == bindparam("seller"),
            _attempts.c.status.in_(("RUNNING", "VERIFYING", "ACCEPTED")),
        )
    )
    may = or_(_subtasks.c.kind != "evaluate", ~exists(evaluated_by_seller))
    picked: CTE = (
        select(_subtasks)
        .where(_subtasks.c.job_id == bindparam("job"), waits, is_due(bindparam("now")), may, condition)
        .order_by(_subtasks.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=_subtasks)
        .cte("picked")
    )
    first_is_alive = exists().where(
        _attempts.c.subtask_id == picked.c.id, _attempts.c.status.in_(("RUNNING", "VERIFYING")), ~_attempts.c.is_backup
    )
    return described(picked).add_columns(
        (picked.c.attempts_made + 1).label("number"),
        literal(late).label("is_beside"),
        (first_is_alive if late else literal(False)).label("is_backup"),
    )


_is_held = and_(_attempts.c.agent_id == bindparam("agent"), _attempts.c.slot == bindparam("held_slot"), _attempts.c.status == "RUNNING")
_HOLDS = select(_attempts.c.id).where(_is_held)
_HELD = (
    described(_subtasks)
    .join(_attempts, _attempts.c.subtask_id == _subtasks.c.id)
    .where(_is_held)
    .add_columns(
        _attempts.c.number, literal(False).label("is_beside"), _attempts.c.is_backup, _attempts.c.lease_token, _attempts.c.deadline_at
    )
)
_RENEW = update(_attempts).where(_is_held).values(lease_expires_at=bindparam("expires_at"))
_running = (
    select(_attempts.c.buyer_id, func.count().label("running"))
    .where(_attempts.c.status == "RUNNING")
    .group_by(_attempts.c.buyer_id)
    .subquery()
)
# Buyers with the fewest running attempts first, then warm jobs, then age.
_JOBS_IN_ORDER = (
    select(_jobs.c.id, _jobs.c.current_round)
    .outerjoin(_running, _running.c.buyer_id == _jobs.c.owner_id)
    .where(
        _jobs.c.status == "RUNNING",
        _jobs.c.needs_ram_bytes <= bindparam("ram"),
        _jobs.c.needs_gpus <= bindparam("gpus"),
        _jobs.c.needs_vram_bytes <= bindparam("vram"),
        or_(_jobs.c.recipe.is_not(None), bindparam("accepts", type_=String) == "all"),
        exists().where(_subtasks.c.job_id == _jobs.c.id, is_open(bindparam("now"))),
    )
    .order_by(func.coalesce(_running.c.running, 0), case((_jobs.c.id.in_(bindparam("warm", expanding=True)), 0), else_=1), _jobs.c.id)
    .limit(_MAX_JOBS)
)
_earlier = _subtasks.alias()
_losses_here = (
    select(_losses()).where(_attempts.c.subtask_id == _subtasks.c.id, _attempts.c.seller_id == bindparam("seller")).scalar_subquery()
)
_known_chunks = (
    select(_earlier.c.chunk_index)
    .join(_attempts, _attempts.c.subtask_id == _earlier.c.id)
    .where(_attempts.c.agent_id == bindparam("agent"), _earlier.c.job_id == bindparam("job"))
)
_PICK = _picking(_losses_here < _MOST_LOSSES)
_PICK_KNOWN = _picking(and_(_losses_here < _MOST_LOSSES, _subtasks.c.chunk_index.in_(_known_chunks)))
_PICK_BACKUP = _picking(_losses_here < _MOST_LOSSES, late=True)
_SECOND = (
    update(_subtasks)
    .where(_subtasks.c.id == bindparam("guarded_id"), _subtasks.c.status == "RUNNING")
    .values(attempts_made=bindparam("number"), wants_backup=False)
)
_BEGIN = insert(_attempts).returning(_attempts.c.id)
