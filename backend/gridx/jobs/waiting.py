"""In words, what a job waits for: the line under its progress bar."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.jobs import gang_waiting
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import JOB_ENDS, SUBTASK_ENDS


def waiting_for(session: Session, job: Job, now: datetime, offline_after_s: float) -> str | None:
    """A sentence for the buyer, or None when the job is at its end."""
    if job.status in JOB_ENDS:
        return None
    if job.status == "PROCESSING":
        return f"the rows are being dealt to {job.chunks} chunks"
    if job.status == "AGGREGATING":
        return f"the updates of round {job.current_round} are being merged"
    if job.mode == "ddp":
        return gang_waiting.waiting_for(session, job, now, offline_after_s)
    current = session.scalars(select(Round).where(Round.job_id == job.id, Round.number == job.current_round)).one()
    is_merged = current.closed_at is not None
    kind = "evaluate" if is_merged else "train"
    counts = dict(
        session.execute(
            select(Subtask.status, func.count())
            .where(Subtask.job_id == job.id, Subtask.round_number == job.current_round, Subtask.kind == kind)
            .group_by(Subtask.status)
        ).all()
    )
    total = sum(counts.values())
    left = total - sum(counts.get(status, 0) for status in SUBTASK_ENDS)
    what = "evaluations of the round's model" if is_merged else "updates"
    parts = [f"round {job.current_round} of {job.rounds}: waiting for {left} of {total} {what}"]
    if counts.get("RUNNING"):
        parts.append(f"{counts['RUNNING']} {'evaluating' if is_merged else 'training'}")
    if counts.get("VERIFYING"):
        parts.append(f"{counts['VERIFYING']} being verified")
    if counts.get("PENDING"):
        parts.append(f"{counts['PENDING']} waiting for {_what_agents(session, job, now, offline_after_s)}")
    if current.deadline_at is not None and not is_merged:
        left_s = max(0, round((current.deadline_at - now).total_seconds()))
        then = "then it closes with what is there" if left < total - job.min_updates + 1 else f"{job.min_updates} are needed by then"
        parts.append(f"its deadline comes in {left_s} s, {then}")
    return "; ".join(parts)


def _what_agents(session: Session, job: Job, now: datetime, offline_after_s: float) -> str:
    online = session.scalars(select(Agent).where(agents.is_online(now, offline_after_s))).all()
    if not online:
        return "an agent: none is online"
    able = [
        agent
        for agent in online
        if agent.ram_bytes >= job.needs_ram_bytes and agent.gpu_count >= job.needs_gpus and agent.vram_bytes >= job.needs_vram_bytes
    ]
    if not able:
        return f"an agent that meets the job's needs ({_needs(job)}): {len(online)} online, none does"
    suited = [agent for agent in able if agent.takes_work(now) and (job.recipe is not None or agent.accepts == "all")]
    if not suited:
        return f"an agent that takes it: of {len(able)} online that could do it, none takes it now (hours, recipes only, quarantine)"
    busy = (
        session.scalar(
            select(func.count())
            .select_from(Attempt)
            .where(Attempt.status == "RUNNING", Attempt.agent_id.in_([agent.id for agent in suited]))
        )
        or 0
    )
    if busy >= len(suited):
        return (
            f"an agent: all {len(suited)} that could do it are busy"
            if len(suited) > 1
            else "an agent: the only one that could do it is busy"
        )
    return "an agent to ask for work"


def _needs(job: Job) -> str:
    parts: list[str] = []
    if job.needs_ram_bytes:
        parts.append(f"{job.needs_ram_bytes / 2**30:.1f} GiB of RAM")
    if job.needs_gpus:
        parts.append("a GPU")
    if job.needs_vram_bytes:
        parts.append(f"{job.needs_vram_bytes / 2**30:.1f} GiB of GPU memory")
    return ", ".join(parts)
