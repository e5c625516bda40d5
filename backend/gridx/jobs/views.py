"""Reading jobs: what the pages and the API show. Nothing here changes a row."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from gridx.datasets.models import Dataset
from gridx.jobs.gang_view import latest_gang
from gridx.jobs.models import Attempt, AttemptLog, Job, JobEvent, Metric, Round, Subtask
from gridx.jobs.options import EarlyStopping
from gridx.jobs.schemas import (
    AgentResult,
    AttemptView,
    EvaluationView,
    EventView,
    JobSummary,
    JobView,
    LogView,
    MetricView,
    ResultsView,
    RoundResult,
    RoundView,
    SubtaskView,
)
from gridx.jobs.waiting import waiting_for
from gridx.ledger import accounts as ledger_accounts
from gridx_protocol import Needs

_MAX_EVENTS = 200
_ATTEMPT_FIELDS = set(AttemptView.model_fields) - {"attempt"}
_SUMMARY_FIELDS = set(JobSummary.model_fields) - {"dataset_name", "completed_subtasks", "started_at"}


def list_jobs(session: Session, owner_id: int, limit: int = 200) -> list[JobSummary]:
    """The newest jobs of a buyer."""
    rows = session.execute(
        select(Job, Dataset.name)
        .join(Dataset, Dataset.id == Job.dataset_id)
        .where(Job.owner_id == owner_id)
        .order_by(Job.id.desc())
        .limit(limit)
    ).all()
    ids = [job.id for job, _ in rows]
    done, started = _completed(session, ids), _started(session, ids)
    return [JobSummary(**_summary(job, name, done.get(job.id, 0), started.get(job.id))) for job, name in rows]


def job_view(session: Session, job: Job, round_number: int | None, now: datetime, offline_after_s: float) -> JobView:
    """One job with its rounds, the subtasks of one round, and the timeline's end."""
    name = session.scalar(select(Dataset.name).where(Dataset.id == job.dataset_id)) or ""
    done = _completed(session, [job.id]).get(job.id, 0)
    events = session.scalars(select(JobEvent).where(JobEvent.job_id == job.id).order_by(JobEvent.id.desc()).limit(_MAX_EVENTS)).all()
    return JobView(
        **_summary(job, name, done, _started(session, [job.id]).get(job.id)),
        arguments=job.arguments,
        partitioner_options=job.partitioner_options,
        strategy_options=job.strategy_options,
        hyperparameters=job.hyperparameters,
        time_limit_s=job.time_limit_s,
        needs=Needs.model_validate(job.needs),
        min_updates=job.min_updates,
        chunks_per_round=job.chunks_per_round,
        round_deadline_s=job.round_deadline_s,
        backups=job.backups,
        held_out_share=job.held_out_share,
        evaluations=job.evaluations,
        early_stopping=EarlyStopping.model_validate(job.early_stopping) if job.early_stopping else None,
        has_initial_model=job.initial_model_key is not None,
        best_round=job.best_round,
        seed=job.seed,
        units=job.units,
        held=ledger_accounts.balance(session, ledger_accounts.escrow_code(job.id)),
        paid=int(session.scalar(select(func.sum(Attempt.paid)).where(Attempt.job_id == job.id)) or 0),
        warnings=job.warnings,
        waiting_for=waiting_for(session, job, now, offline_after_s),
        round_list=_rounds(session, job),
        subtasks=_subtasks(session, job, round_number or job.current_round, now),
        gang=latest_gang(session, job),
        events=[EventView.model_validate(event, from_attributes=True) for event in reversed(events)],
    )


def results(session: Session, job: Job) -> ResultsView:
    """Means over the accepted updates of the last round that has any, and why others failed."""
    accepted = _accepted(session, job.id)
    last = max((subtask.round_number for _, subtask in accepted), default=None)
    final = [(attempt, subtask) for attempt, subtask in accepted if subtask.round_number == last]
    by_agent: dict[str, list[tuple[Attempt, Subtask]]] = defaultdict(list)
    for attempt, subtask in final:
        by_agent[attempt.agent_id].append((attempt, subtask))
    errors = session.execute(
        select(Attempt.agent_id, Subtask.chunk_index, Subtask.round_number, Attempt.reason)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job.id, Attempt.status.in_(("FAILED", "REFUSED")))
        .order_by(Attempt.id)
        .limit(100)
    ).all()
    return ResultsView(
        job_id=job.id,
        status=job.status,
        reason=job.reason,
        round=last,
        rows=sum(subtask.rows for _, subtask in final),
        mean_loss=_mean(final, "loss"),
        mean_accuracy=_mean(final, "accuracy"),
        convergence_delta=session.scalar(select(Round.convergence_delta).where(Round.job_id == job.id, Round.number == last)),
        per_agent=[
            AgentResult(
                agent_id=agent_id,
                updates=len(pairs),
                rows=sum(subtask.rows for _, subtask in pairs),
                mean_loss=_mean(pairs, "loss"),
                mean_accuracy=_mean(pairs, "accuracy"),
                train_s=sum(attempt.train_s or 0.0 for attempt, _ in pairs),
            )
            for agent_id, pairs in sorted(by_agent.items())
        ],
        per_round=_per_round(accepted),
        errors=[f"round {number}, chunk {chunk}, {agent_id}: {reason}" for agent_id, chunk, number, reason in errors],
    )


def metrics(
    session: Session, job_id: int, after: tuple[int, int], limit: int, round_number: int | None = None
) -> tuple[list[MetricView], tuple[int, int] | None]:
    """Reported metrics in the order of (attempt, seq), after a place; and the place to go on from."""
    statement = (
        select(Metric, Attempt.agent_id, Attempt.number, Subtask.round_number, Subtask.chunk_index)
        .join(Attempt, Attempt.id == Metric.attempt_id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Metric.job_id == job_id, Subtask.kind != "evaluate")
        .where((Metric.attempt_id > after[0]) | ((Metric.attempt_id == after[0]) & (Metric.seq > after[1])))
        .order_by(Metric.attempt_id, Metric.seq)
        .limit(limit)
    )
    if round_number is not None:
        statement = statement.where(Subtask.round_number == round_number)
    rows = session.execute(statement).all()
    items = [
        MetricView(
            round=number,
            chunk=chunk,
            agent_id=agent_id,
            attempt=attempt,
            seq=metric.seq,
            epoch=metric.epoch,
            loss=metric.loss,
            accuracy=metric.accuracy,
            more=metric.more,
            at=metric.at,
        )
        for metric, agent_id, attempt, number, chunk in rows
    ]
    last = rows[-1][0] if len(rows) == limit else None
    return items, (last.attempt_id, last.seq) if last else None


def logs(session: Session, job_id: int, after_id: int, subtask_id: int | None, limit: int) -> tuple[list[LogView], int | None]:
    """Output of attempts, oldest attempt first; and the attempt to go on from."""
    statement = (
        select(AttemptLog, Attempt, Subtask)
        .join(Attempt, Attempt.id == AttemptLog.attempt_id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job_id, Attempt.id > after_id)
        .order_by(Attempt.id)
        .limit(limit)
    )
    if subtask_id is not None:
        statement = statement.where(Subtask.id == subtask_id)
    rows = session.execute(statement).all()
    items = [
        LogView(
            subtask_id=subtask.id,
            round=subtask.round_number,
            chunk=subtask.chunk_index,
            attempt=attempt.number,
            agent_id=attempt.agent_id,
            text=_log_text(log),
            total_bytes=log.total_bytes,
        )
        for log, attempt, subtask in rows
    ]
    return items, rows[-1][1].id if len(rows) == limit else None


def _log_text(log: AttemptLog) -> str:
    kept = len(log.head.encode()) + len(log.tail.encode())
    cut = log.total_bytes - kept
    return f"{log.head}\n[... {cut} bytes cut ...]\n{log.tail}" if log.tail and cut > 0 else log.head + log.tail


def _summary(job: Job, dataset_name: str, completed: int, started_at: datetime | None) -> dict[str, Any]:
    derived = {"dataset_name": dataset_name, "completed_subtasks": completed, "started_at": started_at}
    return {name: getattr(job, name) for name in _SUMMARY_FIELDS} | derived


def _started(session: Session, job_ids: Sequence[int]) -> dict[int, datetime]:
    """When the first attempt of each job began."""
    rows = session.execute(select(Attempt.job_id, func.min(Attempt.started_at)).where(Attempt.job_id.in_(job_ids)).group_by(Attempt.job_id))
    return dict(rows.all())


def _completed(session: Session, job_ids: Sequence[int]) -> dict[int, int]:
    rows = session.execute(
        select(Subtask.job_id, func.count())
        .where(Subtask.job_id.in_(job_ids), Subtask.status == "COMPLETED", Subtask.kind != "evaluate")
        .group_by(Subtask.job_id)
    )
    return dict(rows.all())


def _rounds(session: Session, job: Job) -> list[RoundView]:
    per_round: dict[int, list[tuple[Attempt, Subtask]]] = defaultdict(list)
    for attempt, subtask in _accepted(session, job.id):
        per_round[subtask.round_number].append((attempt, subtask))
    return [
        RoundView(
            round=row.number,
            opened_at=row.opened_at,
            closed_at=row.closed_at,
            updates_used=row.updates_used,
            rows_used=row.rows_used,
            convergence_delta=row.convergence_delta,
            step_norm=row.step_norm,
            mean_loss=_mean(per_round[row.number], "loss"),
            mean_accuracy=_mean(per_round[row.number], "accuracy"),
            evaluation=EvaluationView.model_validate(row.evaluation) if row.evaluation else None,
            deadline_at=row.deadline_at,
            global_model_sha256=row.global_model_sha256,
        )
        for row in session.scalars(select(Round).where(Round.job_id == job.id, Round.number > 0).order_by(Round.number))
    ]


def _subtasks(session: Session, job: Job, round_number: int, now: datetime) -> list[SubtaskView]:
    subtasks = session.scalars(
        select(Subtask)
        .where(Subtask.job_id == job.id, Subtask.round_number == round_number)
        .order_by(Subtask.kind == "evaluate", Subtask.chunk_index)
    ).all()
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in session.scalars(
        select(Attempt).where(Attempt.subtask_id.in_([subtask.id for subtask in subtasks])).order_by(Attempt.id)
    ):
        attempts[attempt.subtask_id].append(attempt)
    return [_subtask_view(subtask, attempts[subtask.id], now) for subtask in subtasks]


def _subtask_view(subtask: Subtask, attempts: Sequence[Attempt], now: datetime) -> SubtaskView:
    latest = max(attempts, key=_prominence, default=None)
    is_open = latest is not None and subtask.status not in ("PENDING",)
    return SubtaskView(
        id=subtask.id,
        round=subtask.round_number,
        chunk=subtask.chunk_index,
        kind=subtask.kind,
        status=subtask.status,
        rows=subtask.rows,
        attempt=subtask.attempts_made,
        agent_id=latest.agent_id if latest and is_open else None,
        phase=latest.phase if latest and latest.status == "RUNNING" else None,
        progress=latest.progress if latest and is_open else None,
        epoch=latest.epoch if latest and is_open else None,
        loss=latest.loss if latest and is_open else None,
        accuracy=latest.accuracy if latest and is_open else None,
        duration_s=((latest.finished_at or now) - latest.started_at).total_seconds() if latest and is_open else None,
        reason=subtask.reason,
        attempts=[
            AttemptView(
                attempt=attempt.number,
                **{name: getattr(attempt, name) for name in _ATTEMPT_FIELDS},
            )
            for attempt in attempts
        ],
    )


def _prominence(attempt: Attempt) -> tuple[int, int]:
    """Which of a subtask's attempts stands for it: the accepted one, else one that goes on, else the last."""
    return {"ACCEPTED": 2, "RUNNING": 1, "VERIFYING": 1}.get(attempt.status, 0), attempt.number


def _per_round(accepted: Sequence[Row[Attempt, Subtask]]) -> list[RoundResult]:
    """What each agent's accepted updates of each round came to, by round and agent."""
    pairs: dict[tuple[int, str], list[tuple[Attempt, Subtask]]] = defaultdict(list)
    for attempt, subtask in accepted:
        pairs[subtask.round_number, attempt.agent_id].append((attempt, subtask))
    return [
        RoundResult(round=number, agent_id=agent_id, mean_loss=_mean(own, "loss"), mean_accuracy=_mean(own, "accuracy"))
        for (number, agent_id), own in sorted(pairs.items(), key=lambda item: item[0])
    ]


def _accepted(session: Session, job_id: int) -> Sequence[Row[Attempt, Subtask]]:
    return session.execute(
        select(Attempt, Subtask)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job_id, Attempt.status == "ACCEPTED", Subtask.kind != "evaluate")
        .order_by(Subtask.id)
    ).all()


def _mean(pairs: Sequence[tuple[Attempt, Subtask]], name: str) -> float | None:
    """Mean of a final metric weighted by rows, over those that reported it."""
    values = [(getattr(attempt, name), subtask.rows) for attempt, subtask in pairs if getattr(attempt, name) is not None]
    rows = sum(weight for _, weight in values)
    return sum(value * weight for value, weight in values) / rows if rows else None
