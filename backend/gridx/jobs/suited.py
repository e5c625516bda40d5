"""Who could do a job's work."""

from datetime import datetime

from sqlalchemy import ColumnElement, or_
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.jobs.models import Job


def meets_needs(job: Job) -> tuple[ColumnElement[bool], ...]:
    """Conditions on an agent."""
    needs = (Agent.ram_bytes >= job.needs_ram_bytes, Agent.gpu_count >= job.needs_gpus, Agent.vram_bytes >= job.needs_vram_bytes)
    return needs if job.recipe is not None else (*needs, Agent.accepts == "all")


def takes_work(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Conditions on an agent: neither in quarantine nor paused by its owner."""
    return or_(Agent.quarantined_until.is_(None), Agent.quarantined_until <= now), Agent.paused.is_(None)


def suited_sellers(session: Session, job: Job, now: datetime, offline_after_s: float) -> set[int]:
    """Sellers who have a machine online that meets the job's needs: those who can be waited for."""
    return agents.online_sellers(session, now, offline_after_s, *takes_work(now), *meets_needs(job))
