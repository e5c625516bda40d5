"""The global model of each round, scored by the script's own `evaluate` on rows that no chunk holds.

Evaluation subtasks open when a round is merged, one for each of up to `job.evaluations` sellers, so that no seller's word stands alone.
When all have ended, the round keeps the mean of their numbers, and the job goes on: to the next round, or to its end.
All functions here expect the job's row locked and run inside the caller's transaction.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from gridx.datasets.models import Chunk
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.rounds import go_on
from gridx.jobs.states import SUBTASK_ENDS, move
from gridx.jobs.suited import suited_sellers

_DIFFERENT: Final = 1e-3
"""Relative difference beyond which two machines' numbers for one model are worth a word."""
_PATIENCE_S: Final = 60.0
"""How long a second seller's numbers are waited for once the first are there."""


def open_evaluations(session: Session, job: Job, merged: Round, now: datetime, text: str, offline_after_s: float) -> None:
    """Let the global model of `merged` be scored. The job is RUNNING meanwhile."""
    sellers = len(suited_sellers(session, job, now, offline_after_s))
    held_out = session.execute(
        select(Chunk.index, Chunk.rows)
        .where(Chunk.job_id == job.id, Chunk.index >= job.chunks)
        .order_by(Chunk.index)
        .limit(max(1, min(sellers, job.evaluations)))
    ).all()
    session.add_all(
        Subtask(
            job_id=job.id, round_id=merged.id, round_number=merged.number, chunk_index=index, kind="evaluate", status="PENDING", rows=rows
        )
        for index, rows in held_out
    )
    session.flush()
    move(session, job, "RUNNING", now=now, text=text)


def close_if_ready(session: Session, job: Job, round_id: int, now: datetime) -> None:
    """When no evaluation of the round is open any more: keep the mean of their numbers, and go on."""
    if job.status != "RUNNING":
        return
    rows = session.execute(
        select(Subtask, Attempt)
        .outerjoin(Attempt, (Attempt.subtask_id == Subtask.id) & (Attempt.status == "ACCEPTED"))
        .where(Subtask.round_id == round_id, Subtask.kind == "evaluate")
        .order_by(Subtask.chunk_index)
    ).all()
    if any(subtask.status not in SUBTASK_ENDS for subtask, _ in rows):
        return
    merged = session.get_one(Round, round_id)
    found = [(attempt.agent_id, attempt.metrics or {}) for subtask, attempt in rows if subtask.status == "COMPLETED"]
    if not found:
        reasons = "; ".join(subtask.reason or subtask.status for subtask, _ in rows)
        go_on(session, job, merged, now, f"round {merged.number} could not be evaluated: {reasons}")
        return
    merged.evaluation = combine(found, rows[0][0].rows)
    session.flush()
    scores = _scores(session, job)
    job.best_round = max(scores, key=lambda number: (scores[number], -number)) if scores else None
    enough = _is_enough(job, scores)
    text = describe(merged)
    if enough and merged.number < job.rounds:
        assert job.early_stopping is not None
        text += f"; no better for {job.early_stopping['patience']} rounds: the job ends here, round {job.best_round} was best"
    go_on(session, job, merged, now, text, enough=enough)


def is_half_done(session: Session, round_id: int) -> bool:
    """Whether one evaluation of the round is there and another is waited for: what `stop_waiting` looks at."""
    statement = select(Subtask.status).where(Subtask.round_id == round_id, Subtask.kind == "evaluate")
    return {"COMPLETED", "PENDING"} <= set(session.scalars(statement))


def stop_waiting(session: Session, job: Job, merged: Round, now: datetime, offline_after_s: float) -> None:
    """Let go of an evaluation that nobody takes, where another seller's numbers are there already."""
    rows = session.scalars(select(Subtask).where(Subtask.round_id == merged.id, Subtask.kind == "evaluate")).all()
    done = [subtask.finished_at for subtask in rows if subtask.status == "COMPLETED" and subtask.finished_at]
    waiting = [subtask for subtask in rows if subtask.status == "PENDING"]
    if not done or not waiting:
        return
    others = suited_sellers(session, job, now, offline_after_s) - _evaluators(session, merged.id)
    if others and now < min(done) + timedelta(seconds=_PATIENCE_S):
        return
    for subtask in waiting:
        move(session, subtask, "CANCELLED", now=now, text="a second evaluation was given up: no other provider took it")
    close_if_ready(session, job, merged.id, now)


def combine(found: Sequence[tuple[str, Mapping[str, float]]], rows: int) -> dict[str, Any]:
    """The mean of several agents' numbers for the same model and rows, and the names of those that differ."""
    names = [name for name in found[0][1] if all(name in metrics for _, metrics in found)]
    values = {name: [metrics[name] for _, metrics in found] for name in names}
    differ = [name for name, each in values.items() if not all(math.isclose(each[0], value, rel_tol=_DIFFERENT) for value in each)]
    metrics = {name: sum(each) / len(each) for name, each in values.items()}
    return {"metrics": metrics, "rows": rows, "agents": sorted(agent for agent, _ in found), "differ": differ}


def describe(merged: Round) -> str:
    """A line for the timeline."""
    found = merged.evaluation or {}
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in found["metrics"].items())
    text = f"round {merged.number} on {found['rows']} held-out rows: {numbers} (by {' and '.join(found['agents'])})"
    return text + (f"; they differ in {', '.join(found['differ'])}" if found["differ"] else "")


def _scores(session: Session, job: Job) -> dict[int, float]:
    """How good each evaluated round was, the higher the better."""
    rounds = session.execute(
        select(Round.number, Round.evaluation).where(Round.job_id == job.id, Round.evaluation.is_not(None)).order_by(Round.number)
    ).all()
    monitor = (job.early_stopping or {}).get("monitor")
    scores: dict[int, float] = {}
    for number, found in rounds:
        metrics = (found or {}).get("metrics", {})
        name = monitor or ("accuracy" if "accuracy" in metrics else "loss")
        if name in metrics:
            scores[number] = -metrics[name] if name == "loss" else metrics[name]
    return scores


def _is_enough(job: Job, scores: Mapping[int, float]) -> bool:
    """Whether the last `patience` rounds brought nothing better than `min_delta`."""
    if job.early_stopping is None or not scores:
        return False
    best, since = -math.inf, 0
    for score in scores.values():
        if score > best + job.early_stopping["min_delta"]:
            best, since = score, 0
        else:
            since += 1
    return since >= job.early_stopping["patience"]


def _evaluators(session: Session, round_id: int) -> set[int]:
    statement = select(Attempt.seller_id).join(Subtask, Subtask.id == Attempt.subtask_id)
    return set(
        session.scalars(
            statement.where(
                Subtask.round_id == round_id, Subtask.kind == "evaluate", Attempt.status.in_(("RUNNING", "VERIFYING", "ACCEPTED"))
            )
        )
    )
