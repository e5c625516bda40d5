"""How rounds open and close, how attempts end, how jobs end, and what each of these pays.

All functions here expect the job's row locked (`states.lock_job`) and run inside the caller's transaction.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.core.errors import GridxError
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import JOB_ENDS, SUBTASK_ENDS, move, record
from gridx.ledger import accounts as ledger_accounts
from gridx.ledger import transfers as ledger

MAX_FAILURES = 3
"""Attempts at one subtask that may fail or be refused."""
MAX_LOSSES = 10
"""Attempts that may be lost to machines that vanish or have trouble of their own: an idle PC that its owner turns off is no evidence."""
NOT_THE_SCRIPT = frozenset({"agent", "shutdown", "lost", "revoked"})


class NothingAccepted(GridxError):
    status = 409
    code = "nothing_accepted"


def open_round(
    session: Session, job: Job, number: int, rows_per_chunk: Sequence[int], reference: dict[str, Any] | None, now: datetime
) -> Round:
    """Open round `number` with one PENDING training subtask for each chunk."""
    opened = Round(job_id=job.id, number=number, reference=reference, opened_at=now)
    session.add(opened)
    session.flush()
    session.add_all(
        Subtask(job_id=job.id, round_id=opened.id, round_number=number, chunk_index=index, kind="train", status="PENDING", rows=rows)
        for index, rows in enumerate(rows_per_chunk)
    )
    session.flush()
    job.current_round = number
    record(
        session, job.id, now=now, what="round", new="OPEN", text=f"round {number} of {job.rounds} opened with {len(rows_per_chunk)} chunks"
    )
    return opened


def accept_update(session: Session, job: Job, subtask: Subtask, attempt: Attempt, now: datetime) -> None:
    """A verified update counts: the subtask is COMPLETED and its seller is paid, once."""
    _lock_accounts(session, job, attempt.seller_id)
    _end_attempt(session, attempt, "ACCEPTED", now, fault=None, reason=None)
    move(session, subtask, "COMPLETED", now=now, text=f"chunk {subtask.chunk_index}: the update of {attempt.agent_id} was verified")
    ledger.settle(
        session,
        reference=f"subtask:{subtask.id}",
        escrow=ledger_accounts.escrow_code(job.id),
        wallet=ledger_accounts.wallet_code(attempt.seller_id),
        amount=job.units,
        reason=f"job {job.id}, round {subtask.round_number}, chunk {subtask.chunk_index}",
        now=now,
    )
    attempt.paid = job.units
    _after_subtask(session, job, subtask, now)


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
    _end_attempt(session, attempt, status, now, fault=fault, reason=reason)
    attempt.update_key = None  # what was refused is not kept: the sweep deletes the file
    if job.status in JOB_ENDS:
        move(session, subtask, "CANCELLED", now=now, text=f"chunk {subtask.chunk_index}: {reason}", reason=reason)
        release_rest(session, job, now)
        return
    earlier = session.scalars(
        select(Attempt).where(Attempt.subtask_id == subtask.id, Attempt.fault.is_not(None)).order_by(Attempt.id)
    ).all()
    failures = [past for past in earlier if past.fault not in NOT_THE_SCRIPT]
    same = [past for past in failures if past.fault == fault]
    sellers = {past.seller_id for past in same}
    alone = len(suited_sellers(session, job, now, offline_after_s) | {attempt.seller_id}) == 1
    words = f"chunk {subtask.chunk_index} of round {subtask.round_number}: {reason}"
    if len(sellers) >= 2 or (len(same) >= 2 and alone):
        move(session, subtask, "FAILED", now=now, text=words, reason=reason)
        seen_by = "two providers' machines" if len(sellers) >= 2 else "two attempts on the only provider online"
        if len(sellers) >= 2:
            _lock_accounts(session, job, *sellers)
            _pay_reproduced(session, job, same, now)
        fail_job(session, job, f"{words} (the same on {seen_by})", now)
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
        )


def suited_sellers(session: Session, job: Job, now: datetime, offline_after_s: float) -> set[int]:
    """Sellers who have a machine online that meets the job's needs: those who can be waited for."""
    needs = (Agent.ram_bytes >= job.needs_ram_bytes, Agent.gpu_count >= job.needs_gpus, Agent.vram_bytes >= job.needs_vram_bytes)
    return agents.online_sellers(session, now, offline_after_s, *needs)


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


def _lock_accounts(session: Session, job: Job, *seller_ids: int) -> None:
    """Lock all accounts that a transaction may move credits between, in one order for everybody."""
    wallets = {ledger_accounts.wallet_code(user_id) for user_id in (job.owner_id, *seller_ids)}
    ledger.lock(session, {ledger_accounts.escrow_code(job.id), *wallets})


def has_updates(session: Session, job: Job) -> bool:
    """Whether anything of the current round was uploaded."""
    where = (Subtask.job_id == job.id, Subtask.round_number == job.current_round)
    return _count(session, *where, Subtask.status.in_(("VERIFYING", "COMPLETED"))) > 0


def stop_waiting(session: Session, job: Job, now: datetime) -> None:
    """Cancel what nobody has uploaded of the current round. Uploads are still verified."""
    _cancel_open(session, job, "the round was closed by an administrator", now, ("PENDING", "RUNNING"))


def force_close(session: Session, job: Job, now: datetime) -> None:
    """Merge the current round with the updates accepted so far, fewer than the job asks for if need be.

    Raises:
        NothingAccepted: there is no update to merge; the job goes on as before.
    """
    if job.status == "AGGREGATING":
        return
    where = (Subtask.job_id == job.id, Subtask.round_number == job.current_round)
    accepted = _count(session, *where, Subtask.status == "COMPLETED")
    if accepted == 0:
        raise NothingAccepted(f"no update of round {job.current_round} was accepted yet; there is nothing to merge")
    _cancel_open(session, job, "the round was closed by an administrator", now, ("PENDING", "RUNNING", "VERIFYING"))
    move(session, job, "AGGREGATING", now=now, text=f"round {job.current_round}: merging {accepted} of {job.chunks} updates, by hand")


def close_round_if_ready(session: Session, job: Job, round_id: int, now: datetime) -> None:
    """When no subtask of the round is open any more: on to merging, or FAILED when too few updates were accepted."""
    if job.status != "RUNNING":
        return
    states = dict(session.execute(select(Subtask.status, func.count()).where(Subtask.round_id == round_id).group_by(Subtask.status)).all())
    open_count = sum(count for status, count in states.items() if status not in SUBTASK_ENDS)
    accepted = states.get("COMPLETED", 0)
    # What an administrator closed (`stop_waiting`) is not waited for, nor does its lack fail the job.
    wanted = max(1, min(job.min_updates, job.chunks - states.get("CANCELLED", 0)))
    if accepted + open_count < wanted:
        reasons = session.execute(
            select(Subtask.chunk_index, Subtask.reason)
            .where(Subtask.round_id == round_id, Subtask.status == "FAILED")
            .order_by(Subtask.chunk_index)
        ).all()
        words = "; ".join(f"chunk {index}: {reason}" for index, reason in reasons)
        fail_job(session, job, f"round {job.current_round} cannot reach {wanted} updates: {words}", now)
    elif open_count == 0:
        move(session, job, "AGGREGATING", now=now, text=f"round {job.current_round}: merging {accepted} of {job.chunks} updates")


def _after_subtask(session: Session, job: Job, subtask: Subtask, now: datetime) -> None:
    if job.status in JOB_ENDS:
        release_rest(session, job, now)
    else:
        close_round_if_ready(session, job, subtask.round_id, now)


def _end_attempt(session: Session, attempt: Attempt, status: str, now: datetime, *, fault: str | None, reason: str | None) -> None:
    attempt.status, attempt.fault, attempt.reason, attempt.finished_at = status, fault, reason, now
    session.flush()


def _end_job(session: Session, job: Job, status: str, reason: str, now: datetime) -> None:
    move(session, job, status, now=now, text=reason, reason=reason)
    _cancel_open(session, job, f"the job was {status.lower()}: {reason}", now, ("PENDING", "RUNNING"))
    release_rest(session, job, now)


def _cancel_open(session: Session, job: Job, reason: str, now: datetime, statuses: tuple[str, ...]) -> None:
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
            move(session, subtask, "CANCELLED", now=now, text=f"chunk {subtask.chunk_index}: {reason}")
    live = [status for status in statuses if status != "PENDING"]
    session.execute(
        update(Attempt)
        .where(Attempt.job_id == job.id, Attempt.status.in_(live))
        .values(status="CANCELLED", reason=reason[:4000], finished_at=now)
    )


def _pay_reproduced(session: Session, job: Job, attempts: Sequence[Attempt], now: datetime) -> None:
    """Pay the first attempt of each seller who showed the script's fault, as far as the escrow reaches."""
    escrow = ledger_accounts.escrow_code(job.id)
    paid_sellers: set[int] = set()
    for attempt in attempts:
        reserved = _count(session, Subtask.job_id == job.id, Subtask.status == "VERIFYING") * job.units
        amount = min(job.units, ledger_accounts.balance(session, escrow) - reserved)
        if attempt.seller_id in paid_sellers or amount <= 0:
            continue
        paid_sellers.add(attempt.seller_id)
        ledger.settle(
            session,
            reference=f"attempt:{attempt.id}",
            escrow=escrow,
            wallet=ledger_accounts.wallet_code(attempt.seller_id),
            amount=amount,
            reason=f"job {job.id}: showed that the script fails",
            now=now,
        )
        attempt.paid = amount


def _count(session: Session, *where: Any) -> int:
    return session.scalar(select(func.count()).select_from(Subtask).where(*where)) or 0
