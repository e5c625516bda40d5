"""How a machine stands: what it earned, why it has no work, and the quarantine of one whose updates are refused again and again."""

from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.agents.service import AgentActor
from gridx.jobs.claims import holds_attempt, is_open
from gridx.jobs.models import Attempt, Job, Subtask
from gridx_protocol import Profile, ProfileReply

_log = structlog.get_logger()
STREAK: Final = 5
"""Updates refused one after another."""
JOBS: Final = 3
"""From so many jobs at least: one job's script can be wrong on every machine."""
QUARANTINE: Final = timedelta(hours=6)
_LOOK_BACK: Final = timedelta(days=1)


def of(session: Session, agent: AgentActor, profile: Profile, now: datetime) -> ProfileReply:
    """How the server sees a machine."""
    earned, accepted = session.execute(
        select(func.coalesce(func.sum(Attempt.paid), 0), func.count().filter(Attempt.status == "ACCEPTED")).where(
            Attempt.agent_id == agent.id
        )
    ).one()
    return ProfileReply(earned=int(earned), accepted=accepted, idle_because=_why_idle(session, agent, profile, now))


def _why_idle(session: Session, agent: AgentActor, profile: Profile, now: datetime) -> str | None:
    if holds_attempt(session, agent):
        return None
    if agent.is_quarantined(now):
        return session.scalar(select(Agent.quarantine_reason).where(Agent.id == agent.id))
    if profile.paused:
        return profile.paused
    waits = select(Job.id).join(Subtask, Subtask.job_id == Job.id).where(Job.status == "RUNNING", is_open(now))
    if not _any(session, waits.limit(1)):
        return "no job waits for a machine"
    waits = waits.where(Job.needs_ram_bytes <= agent.ram_bytes)
    if not _any(session, waits.limit(1)):
        return f"the jobs that wait need more memory than the {agent.ram_bytes // 2**20} MB that this machine offers (--memory-mb)"
    waits = waits.where(Job.needs_gpus <= agent.gpu_count, Job.needs_vram_bytes <= agent.vram_bytes)
    if not _any(session, waits.limit(1)):
        return "the jobs that wait need a GPU, or more GPU memory than this machine offers (--gpu)"
    if profile.accepts != "all" and not _any(session, waits.where(Job.recipe.is_not(None)).limit(1)):
        return "the jobs that wait bring scripts of their own, and this machine takes the server's recipes only (--accept)"
    failed = select(Attempt.subtask_id).where(Attempt.seller_id == agent.owner_id, Attempt.status.in_(("FAILED", "REFUSED", "LOST")))
    if not _any(session, waits.where(Subtask.id.not_in(failed)).limit(1)):
        return "what waits failed at this provider's already; other providers' machines come first"
    return None


def _any(session: Session, statement: object) -> bool:
    return session.execute(statement).first() is not None  # type: ignore[call-overload]


def suspects(session: Session, now: datetime) -> list[str]:
    """Agents, not in quarantine, that had an update refused lately."""
    free: ColumnElement[bool] = or_(Agent.quarantined_until.is_(None), Agent.quarantined_until <= now)
    statement = (
        select(Attempt.agent_id)
        .join(Agent, Agent.id == Attempt.agent_id)
        .where(Attempt.status == "REFUSED", Attempt.lease_expires_at > now - _LOOK_BACK, free)
        .group_by(Attempt.agent_id)
        .having(func.count() >= STREAK)
    )
    return list(session.scalars(statement))


def judge(session: Session, agent_id: str, now: datetime) -> bool:
    """Quarantine an agent whose last updates were all refused, in several jobs. What came before an earlier quarantine's end is past."""
    since = session.scalar(select(Agent.quarantined_until).where(Agent.id == agent_id))
    decided = select(Attempt.status, Attempt.job_id, Attempt.reason).where(
        Attempt.agent_id == agent_id, Attempt.status.in_(("ACCEPTED", "REFUSED"))
    )
    if since is not None:
        decided = decided.where(Attempt.started_at >= since)
    last = session.execute(decided.order_by(Attempt.finished_at.desc(), Attempt.id.desc()).limit(STREAK)).all()
    jobs = {job_id for _, job_id, _ in last}
    if len(last) < STREAK or len(jobs) < JOBS or any(status != "REFUSED" for status, _, _ in last):
        return False
    until = now + QUARANTINE
    why = (last[0].reason or "no reason was given").splitlines()[0][:300]
    reason = (
        f"its last {STREAK} updates, from {len(jobs)} jobs, were refused, so it gets no work until {until:%Y-%m-%d %H:%M} UTC. "
        f"The latest: {why}. Run `gridx-worker doctor` on it, and rebuild the image with `gridx-worker build-image`"
    )
    agents.quarantine(session, agent_id, until, reason)
    _log.warning("quarantined", agent=agent_id, jobs=len(jobs))
    return True
