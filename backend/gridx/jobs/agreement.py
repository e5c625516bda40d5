"""Whether the updates of a round fit together, and what follows from it. Imported by background work only.

Rounds with a reference (every round but a first one without an initial model) compare each update with it. A round without one
elects it: updates stay VERIFYING until more than half of the chunks agree on keys, shapes and dtypes, and, where several sellers
took part, more than half of those sellers do too.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from gridx.aggregation.checks import compare
from gridx.aggregation.summary import UpdateSummary
from gridx.datasets.models import Chunk
from gridx.jobs import attempts
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.states import JOB_ENDS, SUBTASK_ENDS, lock_job


def decide_next(session: Session, job_id: int, now: datetime, offline_after_s: float) -> bool:
    """Accept or refuse one inspected update of a job. Returns False when none can be decided yet."""
    job = lock_job(session, job_id)
    inspected = _inspected(session, job_id)
    if not inspected:
        return False
    for attempt, subtask in inspected:
        if subtask.kind == "rank":  # rank 0 has the only model there is
            attempts.accept(session, job, subtask, attempt, now)
            return True
        round_ = session.get_one(Round, subtask.round_id)
        reference = UpdateSummary.from_json(round_.reference) if round_.reference else None
        if reference is None and job.status not in JOB_ENDS:
            same_round = [pair for pair in inspected if pair[1].round_id == round_.id]
            elected, is_closed = _elect(session, job, round_, same_round)
            if elected is None and not is_closed:
                continue
            if elected is None:
                _refuse_disagreeing(session, job, attempt, subtask, same_round, now, offline_after_s)
                return True
            round_.reference = elected.to_json()
            reference = elected
        _accept_or_refuse(session, job, attempt, subtask, reference, now, offline_after_s)
        return True
    return False


def _accept_or_refuse(
    session: Session, job: Job, attempt: Attempt, subtask: Subtask, reference: UpdateSummary | None, now: datetime, offline_after_s: float
) -> None:
    update = _summary(attempt)
    difference = compare(reference, update) if reference is not None else None
    if difference is None:
        end = attempts.accept_late if subtask.status in SUBTASK_ENDS else attempts.accept
        end(session, job, subtask, attempt, now)
        return
    assert reference is not None
    reason = difference + _what_it_lacks(session, subtask, reference, update)
    attempts.end_badly(session, job, subtask, attempt, "REFUSED", _fault(update), reason, now, offline_after_s)


def _refuse_disagreeing(
    session: Session,
    job: Job,
    attempt: Attempt,
    subtask: Subtask,
    inspected: Sequence[tuple[Attempt, Subtask]],
    now: datetime,
    offline_after_s: float,
) -> None:
    """All updates are here and no majority among them agrees: the one at hand is compared with one that differs from it."""
    update = _summary(attempt)
    other = next((_summary(past), where) for past, where in inspected if _summary(past).signature != update.signature)
    difference = compare(other[0], update)
    reason = f"the updates of round {subtask.round_number} do not fit together; compared with chunk {other[1].chunk_index}: {difference}"
    reason += _what_it_lacks(session, subtask, other[0], update) or _what_it_lacks(session, other[1], update, other[0])
    attempts.end_badly(session, job, subtask, attempt, "REFUSED", _fault(update), reason, now, offline_after_s)


def _what_it_lacks(session: Session, subtask: Subtask, reference: UpdateSummary, update: UpdateSummary) -> str:
    """The class or category that explains a size, by name, with the cure: a chunk without it makes a smaller layer."""
    wanted = {spec.name: spec.shape for spec in reference.tensors}
    smaller = {
        want - have
        for spec in update.tensors
        if len(spec.shape) == len(wanted.get(spec.name, ()))
        for want, have in zip(wanted[spec.name], spec.shape, strict=True)
        if want > have
    }
    lacks = session.scalar(select(Chunk.lacks).where(Chunk.job_id == subtask.job_id, Chunk.index == subtask.chunk_index)) or {}
    for column, values in lacks.items():
        if len(values) in smaller:
            named = f"{column!r} = {', '.join(map(repr, values))}"
            return (
                f". Chunk {subtask.chunk_index} has no row with {named[:300]}: take "
                f"gridx_task.schema()['columns'][{column!r}]['categories'] instead of counting or fitting on the chunk, "
                f"or deal the rows stratified by {column!r}"
            )
    return ""


def _elect(session: Session, job: Job, round_: Round, inspected: Sequence[tuple[Attempt, Subtask]]) -> tuple[UpdateSummary | None, bool]:
    """The summary that a majority of chunks (and of sellers) shares, and whether no further update can come."""
    votes: Counter[str] = Counter()
    by_seller: dict[int, Counter[str]] = defaultdict(Counter)
    summaries: dict[str, UpdateSummary] = {}
    counted: set[tuple[int, str]] = set()
    for attempt, subtask in inspected:
        summary = _summary(attempt)
        summaries.setdefault(summary.signature, summary)
        if (subtask.id, summary.signature) not in counted:  # a chunk has one vote, however many tried it
            votes[summary.signature] += 1
            counted.add((subtask.id, summary.signature))
        by_seller[attempt.seller_id][summary.signature] += 1
    states = session.scalars(select(Subtask.status).where(Subtask.round_id == round_.id)).all()
    outstanding = sum(status not in SUBTASK_ENDS for status in states) - len({subtask.id for _, subtask in inspected})
    chunks = sum(status not in ("FAILED", "CANCELLED") for status in states)
    winner, count = votes.most_common(1)[0]
    taking_part = _sellers(session, round_)
    sellers_for = sum(votes_of.most_common(1)[0][0] == winner for votes_of in by_seller.values())
    has_chunks = count * 2 > chunks
    has_sellers = len(taking_part) == 1 or sellers_for * 2 > len(taking_part)
    # When nobody else can vote any more, a tie among sellers is broken by the chunks.
    if has_chunks and (has_sellers or outstanding == 0):
        return summaries[winner], outstanding == 0
    return None, outstanding == 0


def _sellers(session: Session, round_: Round) -> set[int]:
    """Sellers who uploaded an update of the round or are at work on one."""
    return set(
        session.scalars(
            select(Attempt.seller_id)
            .join(Subtask, Subtask.id == Attempt.subtask_id)
            .where(Subtask.round_id == round_.id, Attempt.status.in_(("RUNNING", "VERIFYING")))
            .distinct()
        )
    )


def _inspected(session: Session, job_id: int) -> Sequence[Row[Attempt, Subtask]]:
    return session.execute(
        select(Attempt, Subtask)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job_id, Attempt.status == "VERIFYING", Attempt.summary.is_not(None), Attempt.update_key.is_not(None))
        .order_by(Subtask.id)
        .execution_options(populate_existing=True)
    ).all()


def _summary(attempt: Attempt) -> UpdateSummary:
    assert attempt.summary is not None
    return UpdateSummary.from_json(attempt.summary)


def _fault(update: UpdateSummary) -> str:
    """The same shapes from two sellers for one chunk are no accident: the fault carries the signature."""
    return f"mismatch:{update.signature[:32]}"
