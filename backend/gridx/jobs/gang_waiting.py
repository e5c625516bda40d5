"""In words, what a synchronous job waits for."""

from collections import defaultdict
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.jobs import forming
from gridx.jobs.gang_models import Gang, Member, OrchestratorState
from gridx.jobs.gangs import live_gang
from gridx.jobs.models import Attempt, Job

SILENT_S = 15.0


def waiting_for(session: Session, job: Job, now: datetime, offline_after_s: float) -> str:
    """A sentence for the buyer of a job that is RUNNING."""
    gang = live_gang(session, job.id)
    if gang is not None:
        return _of_gang(session, job, gang, now)
    problem = orchestrator_problem(session, now)
    if problem is not None:
        return f"waiting for the orchestrator of synchronous training: {problem}"
    return _of_places(session, job, now, offline_after_s)


def orchestrator_problem(session: Session, now: datetime) -> str | None:
    """Why no gang can form, or None while an orchestrator is at work."""
    state = session.get(OrchestratorState, 1)
    if state is None or (now - state.at).total_seconds() > SILENT_S:
        return "none runs (gridx serve starts one unless GRIDX_ORCHESTRATOR_PORT is 0; gridx orchestrator runs one apart)"
    return state.problem


def _of_gang(session: Session, job: Job, gang: Gang, now: datetime) -> str:
    rows = session.execute(
        select(Member, Attempt).join(Attempt, Attempt.id == Member.attempt_id).where(Member.gang_id == gang.id).order_by(Member.rank)
    ).all()
    name = "the gang" if gang.number == 1 else f"gang {gang.number}"
    if gang.status == "FORMING":
        missing = [f"rank {member.rank} ({attempt.agent_id})" for member, attempt in rows if member.registered_at is None]
        if missing:
            return f"{name} is forming: {_list(missing)} {'has' if len(missing) == 1 else 'have'} not come yet"
        unready = [f"rank {member.rank} ({attempt.agent_id})" for member, attempt in rows if member.ready_at is None]
        return (
            f"{name} is forming: {_list(unready)} still {'fetches' if len(unready) == 1 else 'fetch'} files and packages"
            if unready
            else (f"{name} is forming: the ranks try whether they reach one another")
        )
    counts: dict[str, int] = defaultdict(int)
    for _, attempt in rows:
        counts[attempt.status] += 1
    steps = [member.step for member, _ in rows if member.step is not None]
    parts = [f"{name} trains in step: {counts['RUNNING']} of {job.chunks} ranks at work"]
    if steps:
        parts.append(f"at step {min(steps)}")
    if counts["VERIFYING"]:
        parts.append(f"{counts['VERIFYING']} ended well")
    return ", ".join(parts)


def _of_places(session: Session, job: Job, now: datetime, offline_after_s: float) -> str:
    wanted = f"{job.chunks} ranks need {job.chunks} slots at the same time, of agents that reach one another"
    last = session.scalar(select(func.max(Gang.number)).where(Gang.job_id == job.id, Gang.status == "BROKEN"))
    again = f"gang {last} was stopped; " if last else ""
    free = forming.free_places(session, job, now, offline_after_s)
    if any(len(places) >= job.chunks for places in free.values()):
        return f"{again}{wanted}: they are free, and are about to be reserved"
    places = forming.all_places(session, job, now, offline_after_s)
    most = max((len(group) for group in places.values()), default=0)
    if most >= job.chunks:
        return f"{again}{wanted}: {max(map(len, free.values()), default=0)} are free now, {most} once others have ended or asked again"
    offered = forming.offered(session, now, offline_after_s)
    total = sum(map(len, places.values()))
    if not offered:
        return f"{again}{wanted}: no agent online offers any (gridx-worker run --ddp-slots N does)"
    if total < job.chunks:
        unsuited = f", {offered - total} more do not meet the job's needs, or take no work now" if offered > total else ""
        return f"{again}{wanted}: only {total} are offered{unsuited}; {job.chunks - total} more are missing"
    return f"{again}{wanted}: {total} are offered, but at most {most} of them in one network"


def _list(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
