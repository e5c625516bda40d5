"""From enough accepted updates to a global model, and on to the next round or the end."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from gridx.aggregation.merge import MergeReport, UpdateUnreadable, merge
from gridx.aggregation.strategies.krum import TooFewUpdates
from gridx.background.work import WORK_LEASE_S, Work, run_leased
from gridx.core import lease
from gridx.core.errors import NotFound
from gridx.jobs import evaluation, rounds
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import lock_job

_log = structlog.get_logger()
_STATE = "strategy.state"


@dataclass(frozen=True)
class _Update:
    attempt_id: int
    chunk: int
    key: str
    sha256: str
    rows: int


def aggregate_next(work: Work) -> bool:
    """Merge the oldest round that is ready. Returns False when none is."""
    now = work.clock.now()
    with work.database.read() as session:
        round_id = session.scalar(
            select(Round.id)
            .join(Job, Job.id == Round.job_id)
            .where(Job.status == "AGGREGATING", Round.number == Job.current_round, Round.closed_at.is_(None), lease.is_free(Round, now))
            .order_by(Round.id)
            .limit(1)
        )
    if round_id is None:
        return False
    with work.database.write() as session:
        token = lease.take(session, Round, round_id, now, WORK_LEASE_S, Round.closed_at.is_(None))
    if token is not None:
        run_leased(work, Round, round_id, token, lambda: _aggregate(work, round_id, token), lambda reason: _fail(work, round_id, reason))
    return True


def _aggregate(work: Work, round_id: int, token: str) -> None:
    with work.database.read() as session:
        round_ = session.get_one(Round, round_id)
        job = session.get_one(Job, round_.job_id)
        updates = _accepted(session, round_id)
        previous = session.scalar(select(Round).where(Round.job_id == job.id, Round.number == round_.number - 1))
    model_key = f"jobs/{job.id}/rounds/{round_.number}-{token[:8]}.pth"
    state_key: str | None = None
    with work.folder() as folder:
        try:
            merged = _merge(work, job, updates, previous, folder)
        except TooFewUpdates as error:
            _fail(work, round_id, str(error))
            return
        if merged is None:
            _fail(work, round_id, "too few of the accepted updates could still be read")
            return
        report, used = merged
        work.store.put_file(model_key, folder / "model.pth")
        if (folder / _STATE).exists():
            state_key = f"jobs/{job.id}/rounds/{round_.number}-{token[:8]}.state"
            work.store.put_file(state_key, folder / _STATE)
    with work.database.write() as session:
        job = lock_job(session, job.id)
        lease.give_back(
            session,
            Round,
            round_id,
            token,
            global_model_key=model_key,
            global_model_sha256=report.sha256,
            global_model_bytes=report.size,
            state_key=state_key,
            updates_used=len(used),
            rows_used=report.rows,
            convergence_delta=report.convergence_delta,
            step_norm=report.step_norm,
            closed_at=work.clock.now(),
        )
        if job.status != "AGGREGATING":
            return
        for item, distance in zip(used, report.distances, strict=True):
            session.execute(update(Attempt).where(Attempt.id == item.attempt_id).values(distance=distance))
        stale = _go_on(session, work, job, round_id, report, [item.chunk for item in used])
        if previous is not None and previous.state_key is not None:
            # The next round starts from the new state alone, and it is larger than the model.
            session.execute(update(Round).where(Round.id == previous.id).values(state_key=None))
            stale.append(previous.state_key)
    # The rows no longer point at these files. Should we die here, the sweep finds them.
    for key in stale:
        work.store.delete(key)


def _merge(work: Work, job: Job, updates: list[_Update], previous: Round | None, folder: Path) -> tuple[MergeReport, list[_Update]] | None:
    """Merge what can be read, in the order of chunks. One unreadable file is dropped by name while the quorum holds."""
    global_model = _fetch_if(work, previous.global_model_key if previous else None, folder / "previous.pth")
    state = _fetch_if(work, previous.state_key if previous else None, folder / "previous.state")
    used = [item for item in updates if _fetched(work, job, item, folder)]
    while len(used) >= max(1, min(job.min_updates, len(updates))):
        files = [(folder / f"{item.attempt_id}.pth", item.rows) for item in used]
        try:
            merged = work.executor.submit(
                merge, files, global_model, folder / "model.pth", job.strategy, job.strategy_options, state, folder / _STATE
            )
            return merged.result(), used
        except UpdateUnreadable as error:
            bad = used.pop(error.index)
            _log.error("update dropped", job=job.id, chunk=bad.chunk, attempt=bad.attempt_id, reason=str(error))
    return None


def _fetch_if(work: Work, key: str | None, path: Path) -> Path | None:
    if key is not None:
        work.store.fetch(key, path)
        return path
    return None


def _fetched(work: Work, job: Job, item: _Update, folder: Path) -> bool:
    """Bring a canonical update near; False when the store no longer has what was written there."""
    path = folder / f"{item.attempt_id}.pth"
    try:
        work.store.fetch(item.key, path)
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == item.sha256:
                return True
        reason = "its SHA-256 differs from the one that was noted"
    except NotFound:
        reason = "it is gone"
    _log.error("update dropped", job=job.id, chunk=item.chunk, attempt=item.attempt_id, reason=reason)
    return False


def _go_on(session: Session, work: Work, job: Job, round_id: int, report: MergeReport, chunks: list[int]) -> list[str]:
    """Let the model be evaluated, open the next round or end the job. Returns the keys of files that are not needed any more."""
    now = work.clock.now()
    round_ = session.get_one(Round, round_id, populate_existing=True)
    used, delta = round_.updates_used, report.convergence_delta
    text = f"round {round_.number}: {used} updates over {report.rows} rows merged; convergence delta {delta:.6g}"
    if report.chosen is not None:
        text += f"; {job.strategy} chose {', '.join(f'chunk {chunks[index]}' for index in report.chosen)}"
    if job.evaluations:
        evaluation.open_evaluations(session, job, round_, now, text, work.settings.offline_after_s)
    else:
        rounds.go_on(session, job, round_, now, text)
    if job.keep_updates:
        return []
    # Those of the last round are kept, and with early stopping any round may be the last.
    may_be_last = round_.number == job.rounds or job.early_stopping is not None
    return _forget_updates(session, job.id, round_.number - may_be_last)


def _forget_updates(session: Session, job_id: int, up_to: int) -> list[str]:
    """Let go of the canonical updates of merged rounds."""
    in_rounds = select(Subtask.id).where(Subtask.job_id == job_id, Subtask.round_number <= up_to)
    where = (Attempt.job_id == job_id, Attempt.subtask_id.in_(in_rounds), Attempt.update_key.is_not(None), Attempt.status == "ACCEPTED")
    keys = [key for key in session.scalars(select(Attempt.update_key).where(*where)) if key]
    session.execute(update(Attempt).where(*where).values(update_key=None), execution_options={"synchronize_session": False})
    return keys


def _accepted(session: Session, round_id: int) -> list[_Update]:
    rows = session.execute(
        select(Attempt.id, Subtask.chunk_index, Attempt.update_key, Attempt.summary, Subtask.rows)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Subtask.round_id == round_id, Subtask.kind == "train", Attempt.status == "ACCEPTED", Attempt.update_key.is_not(None))
        .order_by(Subtask.chunk_index)
    )
    return [_Update(attempt, chunk, key or "", (summary or {}).get("sha256", ""), count) for attempt, chunk, key, summary, count in rows]


def _fail(work: Work, round_id: int, reason: str) -> None:
    with work.database.write() as session:
        job = lock_job(session, session.get_one(Round, round_id).job_id)
        if job.status == "AGGREGATING":
            rounds.fail_job(session, job, f"round {job.current_round} could not be merged: {reason}", work.clock.now())
