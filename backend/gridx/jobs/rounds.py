"""How rounds open, close and follow each other, and how jobs end.

All functions here expect the job's row locked (`states.lock_job`) and run inside the caller's transaction.
"""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.orm import Session

from gridx.core.errors import GridxError
from gridx.datasets.models import Chunk
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import SUBTASK_ENDS, label, move, record
from gridx.ledger import accounts as ledger_accounts
from gridx.ledger import transfers as ledger


class NothingAccepted(GridxError):
    status = 409
    code = "nothing_accepted"


def open_round(session: Session, job: Job, number: int, reference: dict[str, Any] | None, now: datetime) -> Round:
    """Open round `number` with one PENDING training subtask for each chunk that takes part."""
    deadline = now + timedelta(seconds=job.round_deadline_s) if job.round_deadline_s else None
    opened = Round(job_id=job.id, number=number, reference=reference, opened_at=now, deadline_at=deadline)
    session.add(opened)
    session.flush()
    chunks = _taking_part(session, job, number)
    kind = "rank" if job.mode == "ddp" else "train"
    session.add_all(
        Subtask(job_id=job.id, round_id=opened.id, round_number=number, chunk_index=index, kind=kind, status="PENDING", rows=rows)
        for index, rows in chunks
    )
    session.flush()
    job.current_round = number
    text = f"round {number} of {job.rounds} opened with {len(chunks)} chunks"
    record(session, job.id, now=now, what="round", new="OPEN", text=text if len(chunks) == job.chunks else f"{text} of {job.chunks}")
    return opened


def go_on(session: Session, job: Job, merged: Round, now: datetime, text: str, *, enough: bool = False) -> None:
    """What follows a merged round: the next one, or the end of the job. `enough`: end it early."""
    if merged.number < job.rounds and not enough:
        open_round(session, job, merged.number + 1, merged.reference, now)
        if job.status != "RUNNING":
            move(session, job, "RUNNING", now=now, text=text)
        return
    move(
        session,
        job,
        "COMPLETED",
        now=now,
        text=text,
        final_model_key=merged.global_model_key,
        final_model_sha256=merged.global_model_sha256,
        final_model_bytes=merged.global_model_bytes,
    )
    release_rest(session, job, now)


def fail_job(session: Session, job: Job, reason: str, now: datetime) -> None:
    """End a job as FAILED. Updates that were already uploaded are still verified and paid; the rest goes back to the buyer."""
    _end_job(session, job, "FAILED", reason, now)


def cancel_job(session: Session, job: Job, now: datetime) -> None:
    """End a job as CANCELLED, with the same promise as `fail_job`."""
    _end_job(session, job, "CANCELLED", "cancelled by its owner", now)


def release_rest(session: Session, job: Job, now: datetime) -> None:
    """Give back what an ended job can no longer pay: everything but the pay of updates that are still being verified."""
    pending = _count(session, Subtask.job_id == job.id, Subtask.status == "VERIFYING")
    escrow = ledger_accounts.escrow_code(job.id)
    amount = ledger_accounts.balance(session, escrow) - pending * job.units
    if amount <= 0:
        return
    ledger.transfer(
        session,
        reference=f"release:{job.id}:{pending}" if pending else f"release:{job.id}",
        source=escrow,
        target=ledger_accounts.wallet_code(job.owner_id),
        amount=amount,
        reason=f"job {job.id} {job.status.lower()}: unused credits",
        now=now,
    )


def has_updates(session: Session, job: Job) -> bool:
    """Whether anything of the current round was uploaded."""
    where = (Subtask.job_id == job.id, Subtask.round_number == job.current_round)
    return _count(session, *where, Subtask.status.in_(("VERIFYING", "COMPLETED"))) > 0


def stop_waiting(session: Session, job: Job, now: datetime) -> None:
    """Cancel what nobody has uploaded of the current round. Uploads are still verified."""
    cancel_open(session, job, "the round was closed by an administrator", now, ("PENDING", "RUNNING"))


def force_close(session: Session, job: Job, now: datetime) -> None:
    """Merge the current round with the updates accepted so far, fewer than the job asks for if need be.

    Raises:
        NothingAccepted: there is no update to merge; the job goes on as before.
    """
    if job.status == "AGGREGATING":
        return
    current = session.scalars(select(Round).where(Round.job_id == job.id, Round.number == job.current_round)).one()
    if current.closed_at is not None:  # it was merged, and its evaluation was cut short
        go_on(session, job, current, now, f"round {current.number}: the evaluation was ended by an administrator")
        return
    where = (Subtask.job_id == job.id, Subtask.round_number == job.current_round)
    accepted = _count(session, *where, Subtask.status == "COMPLETED")
    if accepted == 0:
        raise NothingAccepted(f"no update of round {job.current_round} was accepted yet; there is nothing to merge")
    cancel_open(session, job, "the round was closed by an administrator", now, ("PENDING", "RUNNING", "VERIFYING"))
    move(session, job, "AGGREGATING", now=now, text=f"round {job.current_round}: merging {accepted} updates, by hand")


def close_round_if_ready(session: Session, job: Job, round_id: int, now: datetime) -> None:
    """When no training subtask of the round is open any more: on to merging, or FAILED when too few updates were accepted."""
    if job.status != "RUNNING":
        return
    states = _states(session, round_id)
    chunks, accepted = sum(states.values()), states.get("COMPLETED", 0)
    open_count = sum(count for status, count in states.items() if status not in SUBTASK_ENDS)
    # What an administrator or the deadline closed is not waited for, nor does its lack fail the job.
    wanted = max(1, min(job.min_updates, chunks - states.get("CANCELLED", 0)))
    if accepted + open_count < wanted:
        reasons = session.execute(
            select(Subtask.chunk_index, Subtask.reason)
            .where(Subtask.round_id == round_id, Subtask.status == "FAILED")
            .order_by(Subtask.chunk_index)
        ).all()
        words = "; ".join(f"chunk {index}: {reason}" for index, reason in reasons)
        fail_job(session, job, f"round {job.current_round} cannot reach {wanted} updates: {words}", now)
    elif open_count == 0:
        move(session, job, "AGGREGATING", now=now, text=f"round {job.current_round}: merging {accepted} of {chunks} updates")


def meet_deadline(session: Session, job: Job, round_: Round, now: datetime) -> None:
    """The round's deadline has come: it closes with what is there, or is retried once, or the job is FAILED.

    Updates that were uploaded but not verified yet count as there: they are waited for.
    """
    states = _states(session, round_.id)
    chunks, there = sum(states.values()), states.get("COMPLETED", 0) + states.get("VERIFYING", 0)
    said = f"round {round_.number}: its deadline of {job.round_deadline_s} s came with {there} of {chunks} updates"
    if there >= job.min_updates:
        if states.get("PENDING") or states.get("RUNNING"):
            record(session, job.id, now=now, what="round", new="CLOSED", text=f"{said}; it goes on without the others")
            cancel_open(session, job, "the round was closed at its deadline", now, ("PENDING", "RUNNING"))
        close_round_if_ready(session, job, round_.id, now)
        return
    late = "; ".join(f"chunk {index}: {_lateness(status, agent)}" for index, status, agent in _open(session, round_.id))
    if round_.is_retried:
        fail_job(session, job, f"{said} for the second time; {job.min_updates} are needed. {late}", now)
        return
    round_.is_retried, round_.deadline_at = True, now + timedelta(seconds=job.round_deadline_s or 0)
    if job.backups:
        session.execute(update(Subtask).where(Subtask.round_id == round_.id, Subtask.status == "RUNNING").values(wants_backup=True))
    text = f"{said}; {job.min_updates} are needed, so it gets the same time once more. {late}"
    record(session, job.id, now=now, what="round", new="RETRIED", text=text)


def _end_job(session: Session, job: Job, status: str, reason: str, now: datetime) -> None:
    move(session, job, status, now=now, text=reason, reason=reason)
    cancel_open(session, job, f"the job was {status.lower()}: {reason}", now, ("PENDING", "RUNNING"))
    release_rest(session, job, now)


def cancel_open(session: Session, job: Job, reason: str, now: datetime, statuses: tuple[str, ...]) -> None:
    # Locked first, so that a claim in flight is waited for and its attempt is seen below.
    open_subtasks = session.scalars(
        select(Subtask)
        .where(Subtask.job_id == job.id, Subtask.status.in_(statuses))
        .order_by(Subtask.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    for subtask in open_subtasks:
        if subtask.status in statuses:
            move(session, subtask, "CANCELLED", now=now, text=f"{label(subtask)}: {reason}")
    live = [status for status in statuses if status != "PENDING"]
    session.execute(
        update(Attempt)
        .where(Attempt.job_id == job.id, Attempt.status.in_(live))
        .values(status="CANCELLED", reason=reason[:4000], finished_at=now)
    )


def _count(session: Session, *where: Any) -> int:
    return session.scalar(select(func.count()).select_from(Subtask).where(*where)) or 0


def _taking_part(session: Session, job: Job, number: int) -> list[tuple[int, int]]:
    """(index, rows) of the chunks of a round: all, or a sample that only the job's seed and the round decide."""
    chunks = session.execute(
        select(Chunk.index, Chunk.rows).where(Chunk.job_id == job.id, Chunk.index < job.chunks).order_by(Chunk.index)
    ).all()
    drawn = random.Random(f"{job.seed}:{number}").sample(range(job.chunks), job.chunks_per_round)
    return [(index, rows) for index, rows in chunks if index in drawn]


def _states(session: Session, round_id: int) -> dict[str, int]:
    """How many training subtasks of a round stand where."""
    statement = select(Subtask.status, func.count()).where(Subtask.round_id == round_id, Subtask.kind != "evaluate")
    return dict(session.execute(statement.group_by(Subtask.status)).all())


def _open(session: Session, round_id: int) -> Sequence[Row[int, str, str]]:
    """(chunk, status, agent at work on it if RUNNING) of what is not done."""
    at_work = (Attempt.subtask_id == Subtask.id) & (Attempt.status == "RUNNING")
    return session.execute(
        select(Subtask.chunk_index, Subtask.status, func.max(Attempt.agent_id))
        .outerjoin(Attempt, at_work)
        .where(Subtask.round_id == round_id, Subtask.status.in_(("PENDING", "RUNNING")))
        .group_by(Subtask.chunk_index, Subtask.status)
        .order_by(Subtask.chunk_index)
        .limit(20)
    ).all()


def _lateness(status: str, agent_id: str) -> str:
    return "no agent has taken it" if status == "PENDING" else f"{agent_id} is still at it"
