"""How gangs begin, end and are paid. A gang is one try at a synchronous job: one attempt for each rank, which begin and end together.

Rank 0's model is verified as every update is and becomes the final one; then each rank that ended well is paid, once, by the same reference
as any other subtask. A rank that ends badly before rank 0 has uploaded ends the gang, all ranks wait again, and the next gang starts from
the last checkpoint. Functions that change rows expect the job's row locked (`states.lock_job`).
"""

import re
from datetime import datetime
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gridx.jobs.gang_models import LIVE, Gang, Member
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.pay import lock_accounts, pay, pay_reproduced
from gridx.jobs.rounds import cancel_job as end_job_as_cancelled
from gridx.jobs.rounds import fail_job, release_rest
from gridx.jobs.states import JOB_ENDS, SUBTASK_ENDS, label, move, record

MAX_FAILURES: Final = 3
"""Gangs that may be ended by the script's fault."""
MAX_LOSSES: Final = 10
"""Gangs that may be ended by machines that vanish, or that do not reach one another."""
NOT_THE_SCRIPT: Final = frozenset({"agent", "shutdown", "lost", "revoked", "peer", "late", "network"})
_PEER = re.compile(
    r"connection (was )?(closed|reset|refused|aborted)|closed by (remote )?peer|broken pipe|socket (timeout|closed)|timed out waiting"
    r"|\b(gloo|nccl|tcpstore)\b.*(timed? ?out|error|fail)|Dist(Network|Store|Backend)Error",
    re.IGNORECASE,
)


def live_gang(session: Session, job_id: int) -> Gang | None:
    return session.scalar(select(Gang).where(Gang.job_id == job_id, Gang.status.in_(LIVE)))


def gang_of(session: Session, attempt: Attempt) -> tuple[Gang, Member]:
    """The gang of a rank's attempt, and its place there."""
    row = session.execute(
        select(Gang, Member)
        .join(Member, Member.gang_id == Gang.id)
        .where(Member.attempt_id == attempt.id)
        .execution_options(populate_existing=True)
    ).one()
    return row[0], row[1]


def accept(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    """A rank's upload was verified. Rank 0's is the final model, and all who ended well are paid; no other rank has a model to give."""
    gang, member = gang_of(session, attempt)
    if member.rank != 0:
        attempt.upload_sha256, attempt.update_key, attempt.summary = None, None, None
        session.flush()
        _pay_if_model_is_there(session, job, gang, now)
        return
    attempt.status, attempt.fault, attempt.reason, attempt.finished_at = "ACCEPTED", None, None, now
    session.flush()
    _lock_accounts(session, job, gang)
    move(session, subtask, "COMPLETED", now=now, text=f"rank 0: the model of {attempt.agent_id} was verified")
    _pay(session, job, subtask, attempt, now)
    _pay_if_model_is_there(session, job, gang, now)


def leave(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    """A rank other than 0 has ended well. It is paid once rank 0's model is verified."""
    gang, member = gang_of(session, attempt)
    attempt.status, attempt.phase, attempt.progress, attempt.finished_at = "VERIFYING", None, 1.0, now
    session.flush()
    move(session, subtask, "VERIFYING", now=now, text=f"rank {member.rank} of {attempt.agent_id} has ended well")
    _pay_if_model_is_there(session, job, gang, now)


def end_badly(session: Session, job: Job, subtask: Subtask, attempt: Attempt, status: str, fault: str, reason: str, now: datetime) -> None:
    """A rank ends badly: its gang is stopped at once, unless rank 0's model is there already."""
    gang, member = gang_of(session, attempt)
    if fault.startswith("script") and _PEER.search(reason):
        fault = "peer"  # what a script says when another rank is gone
    attempt.status, attempt.fault, attempt.reason, attempt.finished_at, attempt.update_key = status, fault, reason, now, None
    session.flush()
    words = f"rank {member.rank} ({attempt.agent_id}): {reason}"
    if job.status in JOB_ENDS:
        if member.rank == 0:
            _dismiss(session, gang, words, now)
        if subtask.status not in SUBTASK_ENDS:
            move(session, subtask, "CANCELLED", now=now, text=words, reason=reason)
        release_rest(session, job, now)
        return
    if gang.status not in LIVE:
        return
    if member.rank != 0 and _model_status(session, gang) is not None:
        move(session, subtask, "PENDING", now=now, text=f"{words}; rank 0's model is there already", reason=reason)
        _finish_if_done(session, job, gang, now)
        return
    break_gang(session, job, gang, attempt, fault, words, now)


def break_gang(session: Session, job: Job, gang: Gang, culprit: Attempt | None, fault: str, words: str, now: datetime) -> None:
    """Stop a gang: nobody's attempt goes on, all ranks wait again; or the job is FAILED when its tries are spent."""
    gang.status, gang.fault, gang.reason, gang.ended_at = "BROKEN", fault, words, now
    gang.culprit_id = culprit.id if culprit is not None else None
    session.flush()
    _dismiss(session, gang, words, now)
    record(session, job.id, now=now, what="round", new="BROKEN", text=f"gang {gang.number} was stopped: {words}"[:4000])
    verdict = _verdict(session, job, gang, now)
    if verdict is not None:
        fail_job(session, job, verdict, now)


def note_late_failure(session: Session, job: Job, attempt: Attempt, fault: str, reason: str, now: datetime) -> bool:
    """A rank says why it failed after its gang was stopped for another's lost connection: then this is the cause. Whether it was noted."""
    if job.mode != "ddp" or attempt.status != "CANCELLED" or not fault.startswith("script") or _PEER.search(reason):
        return False
    gang, member = gang_of(session, attempt)
    if gang.status != "BROKEN" or gang.fault != "peer" or job.status in JOB_ENDS:
        return False
    attempt.status, attempt.fault, attempt.reason = "FAILED", fault, reason
    gang.fault, gang.culprit_id = fault, attempt.id
    gang.reason = f"rank {member.rank} ({attempt.agent_id}): {reason}"
    session.flush()
    record(session, job.id, now=now, what="round", new="BROKEN", text=f"gang {gang.number} ended because of {gang.reason}"[:4000])
    verdict = _verdict(session, job, gang, now)
    if verdict is not None:
        successor = live_gang(session, job.id)
        if successor is not None:
            successor.status, successor.reason, successor.ended_at = "BROKEN", verdict, now
            _dismiss(session, successor, verdict, now)
        fail_job(session, job, verdict, now)
    return True


def cancel_job(session: Session, job: Job, now: datetime) -> None:
    """End a job on its buyer's wish. What rank 0 has uploaded is still verified, and pays all who ended well."""
    gang = live_gang(session, job.id) if job.mode == "ddp" else None
    if gang is not None and _model_status(session, gang) is None:
        words = "the job was cancelled by its owner"
        gang.status, gang.reason, gang.ended_at = "BROKEN", words, now
        session.flush()
        _dismiss(session, gang, words, now)
    end_job_as_cancelled(session, job, now)


def _dismiss(session: Session, gang: Gang, words: str, now: datetime) -> None:
    """Free all who are still at work or wait for rank 0's model; their ranks are PENDING again."""
    rows = session.execute(
        select(Attempt, Subtask)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Member.gang_id == gang.id)
        .order_by(Member.rank)
        .execution_options(populate_existing=True)
    ).all()
    for attempt, _ in rows:
        if attempt.status in ("RUNNING", "VERIFYING"):
            attempt.status, attempt.reason, attempt.finished_at = "CANCELLED", f"the gang was stopped: {words}"[:4000], now
            attempt.update_key = None
    session.flush()
    for _, subtask in rows:
        if subtask.status in ("RUNNING", "VERIFYING"):
            move(session, subtask, "PENDING", now=now, text=f"rank {subtask.chunk_index} waits for the next gang", reason=words)


def _verdict(session: Session, job: Job, gang: Gang, now: datetime) -> str | None:
    """Why the job is FAILED now, or None while another gang may try. Two sellers who showed the same fault are paid for it."""
    broken = session.scalars(select(Gang).where(Gang.job_id == job.id, Gang.status == "BROKEN").order_by(Gang.id)).all()
    failures = [past for past in broken if past.fault not in NOT_THE_SCRIPT]
    same = [past for past in failures if past.fault == gang.fault]
    if gang in same and len(same) >= 2:
        culprits = session.scalars(
            select(Attempt).where(Attempt.id.in_([past.culprit_id for past in same if past.culprit_id])).order_by(Attempt.id)
        ).all()
        taking_part = set(
            session.scalars(
                select(Attempt.seller_id)
                .join(Member, Member.attempt_id == Attempt.id)
                .where(Member.gang_id.in_([past.id for past in same]))
            )
        )
        sellers = {attempt.seller_id for attempt in culprits}
        if len(sellers) >= 2:
            lock_accounts(session, job, sellers)
            pay_reproduced(session, job, culprits, now)
            session.flush()
            return f"{gang.reason} (the same on two providers' machines)"
        if len(taking_part) == 1:
            return f"{gang.reason} (the same in two gangs on the only provider's machines)"
    if len(failures) >= MAX_FAILURES:
        return "; ".join(f"gang {past.number}: {past.reason}" for past in failures[-MAX_FAILURES:])
    if len(broken) - len(failures) >= MAX_LOSSES:
        lost = [past for past in broken if past not in failures]
        return f"{len(lost)} gangs were lost; the last: {lost[-1].reason}"
    return None


def _model_status(session: Session, gang: Gang) -> str | None:
    """VERIFYING or ACCEPTED once rank 0 has uploaded its model."""
    return session.scalar(
        select(Attempt.status)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Member.gang_id == gang.id, Member.rank == 0, Attempt.status.in_(("VERIFYING", "ACCEPTED")))
    )


def _pay_if_model_is_there(session: Session, job: Job, gang: Gang, now: datetime) -> None:
    if _model_status(session, gang) != "ACCEPTED":
        return
    _lock_accounts(session, job, gang)
    rows = session.execute(
        select(Attempt, Subtask)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Member.gang_id == gang.id, Attempt.status == "VERIFYING", Attempt.upload_sha256.is_(None))
        .order_by(Member.rank)
    ).all()
    for attempt, subtask in rows:
        attempt.status = "ACCEPTED"
        session.flush()
        move(
            session, subtask, "COMPLETED", now=now, text=f"rank {subtask.chunk_index} of {attempt.agent_id} counts: the model was verified"
        )
        _pay(session, job, subtask, attempt, now)
    _finish_if_done(session, job, gang, now)


def _finish_if_done(session: Session, job: Job, gang: Gang, now: datetime) -> None:
    """When rank 0's model is accepted and nobody is at work any more, the job is COMPLETED."""
    states = dict(
        session.execute(
            select(Attempt.status, func.count())
            .join(Member, Member.attempt_id == Attempt.id)
            .where(Member.gang_id == gang.id)
            .group_by(Attempt.status)
        ).all()
    )
    if _model_status(session, gang) != "ACCEPTED":
        return
    if job.status in JOB_ENDS:
        release_rest(session, job, now)
        return
    if states.get("RUNNING") or states.get("VERIFYING"):
        return
    statement = select(Attempt.update_key, Attempt.summary).join(Member, Member.attempt_id == Attempt.id)
    model = session.execute(statement.where(Member.gang_id == gang.id, Member.rank == 0)).one()
    summary = model.summary or {}
    gang.status, gang.ended_at = "DONE", now
    waiting = session.scalars(select(Subtask).where(Subtask.job_id == job.id, Subtask.status == "PENDING")).all()
    for subtask in waiting:
        move(session, subtask, "CANCELLED", now=now, text=f"rank {subtask.chunk_index} is not needed any more: the model is there")
    rows = session.scalar(select(func.sum(Subtask.rows)).where(Subtask.job_id == job.id)) or 0
    session.execute(
        update(Round)
        .where(Round.job_id == job.id, Round.number == job.current_round)
        .values(
            global_model_key=model.update_key,
            global_model_sha256=summary.get("sha256"),
            global_model_bytes=summary.get("size"),
            updates_used=states.get("ACCEPTED", 0),
            rows_used=rows,
            closed_at=now,
        )
    )
    move(
        session,
        job,
        "COMPLETED",
        now=now,
        text=f"{job.chunks} ranks trained in step over {rows} rows",
        final_model_key=model.update_key,
        final_model_sha256=summary.get("sha256"),
        final_model_bytes=summary.get("size"),
    )
    release_rest(session, job, now)


def _pay(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    pay(session, job, attempt, job.units, now, reference=f"subtask:{subtask.id}", reason=f", {label(subtask)}")
    session.flush()


def _lock_accounts(session: Session, job: Job, gang: Gang) -> None:
    """All accounts that the gang's end may move credits between, in one order for everybody."""
    sellers = session.scalars(
        select(Attempt.seller_id).join(Member, Member.attempt_id == Attempt.id).where(Member.gang_id == gang.id).distinct()
    ).all()
    lock_accounts(session, job, sellers)
