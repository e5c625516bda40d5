"""Reading gangs: what the job page and the orchestrator's dashboard show of each rank."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.jobs.gang_models import Checkpoint, Gang, Member
from gridx.jobs.models import Attempt, Job
from gridx.jobs.schemas import GangView, RankView


def latest_gang(session: Session, job: Job) -> GangView | None:
    """The last try of a synchronous job; None before the first, and for jobs of other modes."""
    if job.mode != "ddp":
        return None
    gang = session.scalar(select(Gang).where(Gang.job_id == job.id).order_by(Gang.number.desc()).limit(1))
    if gang is None:
        return None
    members = session.execute(
        select(Member, Attempt).join(Attempt, Attempt.id == Member.attempt_id).where(Member.gang_id == gang.id).order_by(Member.rank)
    ).all()
    sealed = select(func.count()).select_from(Checkpoint).where(Checkpoint.gang_id == gang.id, Checkpoint.status == "SEALED")
    start = session.get(Checkpoint, gang.checkpoint_id) if gang.checkpoint_id is not None else None
    return GangView(
        number=gang.number,
        status=gang.status,
        reason=gang.reason,
        started_at=gang.started_at,
        ended_at=gang.ended_at,
        resumed_from=start.number if start is not None else None,
        checkpoints=session.scalar(sealed) or 0,
        ranks=[
            RankView(
                rank=member.rank,
                agent_id=attempt.agent_id,
                state=rank_state(gang, member, attempt),
                epoch=attempt.epoch,
                step=member.step,
                loss=attempt.loss,
                samples_per_s=member.samples_per_s,
                seen_at=member.seen_at,
            )
            for member, attempt in members
        ],
    )


def rank_state(gang: Gang, member: Member, attempt: Attempt) -> str:
    """One word for how far a rank is; once its attempt has ended, the attempt's status."""
    if attempt.status != "RUNNING":
        return attempt.status
    if gang.status == "TRAINING":
        return attempt.phase if attempt.phase == "UPLOADING" else "TRAINING"
    return "READY" if member.ready_at else attempt.phase or "RESERVED"
