"""The network as everybody may see it: machines and counts. A machine's hostname is for its owner alone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel
from sqlalchemy import ColumnElement, and_, case, exists, func, select
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.core.errors import NotFound
from gridx.jobs.models import Attempt, Job, Subtask
from gridx_protocol import DoctorCheck

AgentStatus = Literal["IDLE", "BUSY", "OFFLINE"]


class AgentCounts(BaseModel):
    total: int
    online: int
    idle: int
    busy: int
    offline: int


class JobCounts(BaseModel):
    total: int
    queued: int
    running: int
    completed: int
    failed: int


class SummaryView(BaseModel):
    agents: AgentCounts
    jobs: JobCounts
    cores: int
    """Of the machines that are online."""


class DoctorView(BaseModel):
    at: datetime
    score: float | None
    """Samples per second of a fixed small training in the sandbox."""
    checks: list[DoctorCheck]


class AgentView(BaseModel):
    id: str
    status: AgentStatus
    hardware: dict[str, Any]
    isolation: str
    registered_at: datetime
    last_seen_at: datetime
    tasks_completed: int
    current_task: int | None
    """The subtask it works on, for its owner."""
    hostname: str | None
    """For its owner."""
    accepts: str
    """`all`, or `recipes`: only jobs whose script is one of the server's own."""
    paused: str | None
    """Why it asks for no work, as its owner set it. For its owner."""
    quarantined_until: datetime | None
    quarantine_reason: str | None
    """Why it gets no work for a while, and what to do. For its owner."""
    doctor: DoctorView | None
    """What `gridx-worker doctor` found last. For its owner."""


class SellerTask(BaseModel):
    task_id: int
    job_id: int
    round: int
    chunk: int
    attempt: int
    agent_id: str
    status: str
    phase: str | None
    epoch: int | None
    paid: int
    reason: str | None
    started_at: datetime
    finished_at: datetime | None


def summary(session: Session, now: datetime, offline_after_s: float) -> SummaryView:
    """Counts of machines and jobs."""
    status = _status(now, offline_after_s)
    rows = session.execute(select(status, func.count()).where(Agent.removed_at.is_(None)).group_by(status)).all()
    machines = dict(rows)
    cores = session.execute(select(Agent.hardware).where(agents.is_online(now, offline_after_s))).scalars()
    states = dict(session.execute(select(Job.status, func.count()).group_by(Job.status)).all())
    live = ("PROCESSING", "RUNNING", "AGGREGATING")
    begun = exists().where(Attempt.job_id == Job.id)
    running = session.scalar(select(func.count()).select_from(Job).where(Job.status.in_(live), begun)) or 0
    idle, busy = machines.get("IDLE", 0), machines.get("BUSY", 0)
    return SummaryView(
        agents=AgentCounts(total=sum(machines.values()), online=idle + busy, idle=idle, busy=busy, offline=machines.get("OFFLINE", 0)),
        jobs=JobCounts(
            total=sum(states.values()),
            queued=sum(states.get(status, 0) for status in live) - running,
            running=running,
            completed=states.get("COMPLETED", 0),
            failed=states.get("FAILED", 0),
        ),
        cores=sum(int(hardware.get("cores", 0)) for hardware in cores),
    )


def list_agents(
    session: Session,
    viewer_id: int,
    now: datetime,
    offline_after_s: float,
    *,
    status: str | None = None,
    owner_id: int | None = None,
    agent_id: str | None = None,
) -> list[AgentView]:
    """Machines with their state, by name. `status` may also be ONLINE."""
    state = _status(now, offline_after_s)
    statement = select(Agent, state.label("state")).where(Agent.removed_at.is_(None)).order_by(Agent.id).limit(5000)
    if owner_id is not None:
        statement = statement.where(Agent.owner_id == owner_id)
    if agent_id is not None:
        statement = statement.where(Agent.id == agent_id)
    if status == "ONLINE":
        statement = statement.where(state.in_(("IDLE", "BUSY")))
    elif status is not None:
        statement = statement.where(state == status)
    rows = session.execute(statement).all()
    ids = [agent.id for agent, _ in rows]
    done = dict(
        session.execute(
            select(Attempt.agent_id, func.count()).where(Attempt.agent_id.in_(ids), Attempt.status == "ACCEPTED").group_by(Attempt.agent_id)
        ).all()
    )
    current = dict(
        session.execute(select(Attempt.agent_id, Attempt.subtask_id).where(Attempt.agent_id.in_(ids), Attempt.status == "RUNNING")).all()
    )
    return [_view(agent, state, done.get(agent.id, 0), current.get(agent.id), agent.owner_id == viewer_id) for agent, state in rows]


def get_agent(session: Session, viewer_id: int, agent_id: str, now: datetime, offline_after_s: float) -> AgentView:
    found = list_agents(session, viewer_id, now, offline_after_s, agent_id=agent_id)
    if not found:
        raise NotFound(f"there is no machine named {agent_id!r}")
    return found[0]


def seller_tasks(session: Session, seller_id: int, limit: int = 200) -> list[SellerTask]:
    """What a seller's machines worked on, newest first."""
    rows = session.execute(
        select(Attempt, Subtask)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.seller_id == seller_id)
        .order_by(Attempt.id.desc())
        .limit(limit)
    )
    return [
        SellerTask(
            task_id=subtask.id,
            job_id=attempt.job_id,
            round=subtask.round_number,
            chunk=subtask.chunk_index,
            attempt=attempt.number,
            agent_id=attempt.agent_id,
            status=attempt.status,
            phase=attempt.phase if attempt.status == "RUNNING" else None,
            epoch=attempt.epoch,
            paid=attempt.paid,
            reason=attempt.reason,
            started_at=attempt.started_at,
            finished_at=attempt.finished_at,
        )
        for attempt, subtask in rows
    ]


def _status(now: datetime, offline_after_s: float) -> ColumnElement[AgentStatus]:
    busy = exists().where(and_(Attempt.agent_id == Agent.id, Attempt.status == "RUNNING"))
    return case((~agents.is_online(now, offline_after_s), "OFFLINE"), (busy, "BUSY"), else_="IDLE")


def _view(agent: Agent, status: AgentStatus, done: int, current: int | None, is_owner: bool) -> AgentView:
    private: Sequence[str] = () if is_owner else ("hostname",)
    return AgentView(
        id=agent.id,
        status=status,
        hardware={name: value for name, value in agent.hardware.items() if name not in private},
        isolation=str(agent.hardware.get("isolation", "")),
        registered_at=agent.registered_at,
        last_seen_at=agent.last_seen_at,
        tasks_completed=done,
        current_task=current if is_owner else None,
        hostname=agent.hardware.get("hostname") if is_owner else None,
        accepts=agent.accepts,
        paused=agent.paused if is_owner else None,
        quarantined_until=agent.quarantined_until if is_owner else None,
        quarantine_reason=agent.quarantine_reason if is_owner else None,
        doctor=DoctorView.model_validate(agent.doctor) if is_owner and agent.doctor else None,
    )
