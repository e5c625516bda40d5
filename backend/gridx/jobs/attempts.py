"""How attempts end, and what each end pays.

All functions here expect the job's row locked (`states.lock_job`) and run inside the caller's transaction.
"""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from gridx.jobs import evaluation, gangs
from gridx.jobs.models import Attempt, Job, Subtask
from gridx.jobs.pay import lock_accounts, pay, pay_reproduced
from gridx.jobs.rounds import close_round_if_ready, fail_job, release_rest
from gridx.jobs.states import JOB_ENDS, SUBTASK_ENDS, label, move
from gridx.jobs.suited import suited_sellers
from gridx.ledger import accounts as ledger_accounts

MAX_FAILURES = 3
"""Attempts at one subtask that may fail or be refused."""
MAX_LOSSES = 10
"""Attempts that may be lost to machines that vanish or have trouble of their own: an idle PC that its owner turns off is no evidence."""
NOT_THE_SCRIPT = frozenset({"agent", "shutdown", "lost", "revoked"})


def accept(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    """Verified work counts: the subtask is COMPLETED and its seller is paid, once. Whoever else was at it may stop."""
    if subtask.kind == "rank":
        gangs.accept(session, job, subtask, attempt, now)
        return
    lock_accounts(session, job, [attempt.seller_id])
    _end_attempt(session, attempt, "ACCEPTED", now, fault=None, reason=None)
    what = "numbers" if subtask.kind == "evaluate" else "update"
    move(
        session,
        subtask,
        "COMPLETED",
        now=now,
        text=f"{label(subtask)}: the {what} of {attempt.agent_id} {'were' if what == 'numbers' else 'was'} verified",
        wants_backup=False,
    )
    session.execute(
        update(Attempt)
        .where(Attempt.subtask_id == subtask.id, Attempt.status == "RUNNING")
        .values(status="CANCELLED", reason=f"{attempt.agent_id} was faster with the same chunk", finished_at=now)
    )
    reason = f", round {subtask.round_number}, {label(subtask)}"
    pay(session, job, attempt, job.units, now, reference=f"subtask:{subtask.id}", reason=reason)
    _after_subtask(session, job, subtask, now)


def accept_late(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    """A valid update that came after another one of its chunk. It is not merged; its seller is paid if the round has credits left over."""
    lock_accounts(session, job, [attempt.seller_id])
    _end_attempt(session, attempt, "CANCELLED", now, fault=None, reason="valid, but another machine's update of this chunk came first")
    attempt.update_key = None
    if not _has_spare_credits(session, job):
        return
    reason = f", round {subtask.round_number}, {label(subtask)}: valid, though late"
    pay(session, job, attempt, job.units, now, reference=f"attempt:{attempt.id}", reason=reason)


def end_badly(
    session: Session,
    job: Job,
    subtask: Subtask,
    attempt: Attempt,
    status: str,
    fault: str,
    reason: str,
    now: datetime,
    offline_after_s: float,
) -> None:
    """An attempt ends without an update: REFUSED, FAILED or LOST. The subtask is tried again, or FAILED, or the job is.

    The same `fault` from two sellers, or twice where only one seller that could do it is online, is the script's: the job ends at once and,
    where two sellers reproduced it, both are paid from what the escrow has left.
    """
    if subtask.kind == "rank":
        gangs.end_badly(session, job, subtask, attempt, status, fault, reason, now)
        return
    _end_attempt(session, attempt, status, now, fault=fault, reason=reason)
    attempt.update_key = None  # what was refused is not kept: the sweep deletes the file
    others = set(
        session.scalars(select(Attempt.status).where(Attempt.subtask_id == subtask.id, Attempt.status.in_(("RUNNING", "VERIFYING"))))
    )
    if subtask.status in SUBTASK_ENDS:
        return
    if job.status in JOB_ENDS:
        if not others:
            move(session, subtask, "CANCELLED", now=now, text=f"{label(subtask)}: {reason}", reason=reason)
        release_rest(session, job, now)
        return
    earlier = session.scalars(
        select(Attempt).where(Attempt.subtask_id == subtask.id, Attempt.fault.is_not(None)).order_by(Attempt.id)
    ).all()
    failures = [past for past in earlier if past.fault not in NOT_THE_SCRIPT]
    same = [past for past in failures if past.fault == fault]
    sellers = {past.seller_id for past in same}
    alone = len(suited_sellers(session, job, now, offline_after_s) | {attempt.seller_id}) == 1
    words = f"{label(subtask)} of round {subtask.round_number}: {reason}"
    if len(sellers) >= 2 or (len(same) >= 2 and alone):
        move(session, subtask, "FAILED", now=now, text=words, reason=reason)
        seen_by = "two providers' machines" if len(sellers) >= 2 else "two attempts on the only provider online"
        if len(sellers) >= 2:
            lock_accounts(session, job, sellers)
            reserved = _count(session, Subtask.job_id == job.id, Subtask.status == "VERIFYING") * job.units
            pay_reproduced(session, job, same, now, reserved=reserved)
        fail_job(session, job, f"{words} (the same on {seen_by})", now)
    elif others:  # somebody else is still at it
        if subtask.status == "VERIFYING" and "VERIFYING" not in others:
            move(session, subtask, "RUNNING", now=now, text=f"{words}; another attempt goes on", reason=reason)
    elif len(failures) >= MAX_FAILURES or len(earlier) - len(failures) >= MAX_LOSSES:
        tries = "; ".join(f"{past.agent_id}: {past.reason}" for past in (failures or earlier)[-MAX_FAILURES:])
        move(session, subtask, "FAILED", now=now, text=f"{words} (attempts spent)", reason=tries)
        _after_subtask(session, job, subtask, now)
    else:
        wait_s = 2.0 ** min(len(earlier) - len(failures), 6) if fault == "agent" else 0.0
        move(
            session,
            subtask,
            "PENDING",
            now=now,
            text=f"{words}; it will be tried again",
            reason=reason,
            not_before=now + timedelta(seconds=wait_s),
            wants_backup=False,
        )


def _after_subtask(session: Session, job: Job, subtask: Subtask, now: datetime) -> None:
    if job.status in JOB_ENDS:
        release_rest(session, job, now)
    elif subtask.kind == "evaluate":
        evaluation.close_if_ready(session, job, subtask.round_id, now)
    else:
        close_round_if_ready(session, job, subtask.round_id, now)


def _has_spare_credits(session: Session, job: Job) -> bool:
    """Whether the escrow holds more than all that may still be asked of it."""
    is_open = _count(session, Subtask.job_id == job.id, Subtask.status.not_in(SUBTASK_ENDS))
    begun = _count(session, Subtask.job_id == job.id, Subtask.kind == "evaluate", Subtask.round_number == job.current_round)
    to_come = (job.rounds - job.current_round) * (job.chunks_per_round + job.evaluations) + (0 if begun else job.evaluations)
    balance = ledger_accounts.balance(session, ledger_accounts.escrow_code(job.id))
    return job.status not in JOB_ENDS and balance >= (is_open + to_come + 1) * job.units


def _end_attempt(session: Session, attempt: Attempt, status: str, now: datetime, *, fault: str | None, reason: str | None) -> None:
    attempt.status, attempt.fault, attempt.reason, attempt.finished_at = status, fault, reason, now
    session.flush()


def _count(session: Session, *where: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(Subtask).where(*where)) or 0
