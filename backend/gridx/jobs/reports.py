"""What agents report while they train: metrics and output. Both may be sent twice and are stored once."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from gridx.jobs.models import Attempt, AttemptLog, Metric
from gridx_protocol import MetricPoint

MAX_POINTS = 20_000
"""Metric points kept of one attempt."""
HEAD_CHARS = 32 * 1024
TAIL_CHARS = 32 * 1024


def store_metrics(session: Session, attempt: Attempt, points: Sequence[MetricPoint], now: datetime) -> int:
    """Store the points that are new and note the latest on the attempt. Returns how many were stored."""
    kept = session.scalar(select(func.count()).select_from(Metric).where(Metric.attempt_id == attempt.id)) or 0
    rows = [
        {
            "attempt_id": attempt.id,
            "seq": point.seq,
            "job_id": attempt.job_id,
            "epoch": point.epoch,
            "loss": finite(point.loss),
            "accuracy": finite(point.accuracy),
            "more": storable(point.more),
            "at": now,
        }
        for point in points[: max(0, MAX_POINTS - kept)]
    ]
    if not rows:
        return 0
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    stored = len(session.execute(insert(Metric).values(rows).on_conflict_do_nothing().returning(Metric.seq)).all())
    latest = max(points, key=lambda point: point.seq)
    attempt.epoch = latest.epoch if latest.epoch is not None else attempt.epoch
    attempt.loss = finite(latest.loss) if latest.loss is not None else attempt.loss
    attempt.accuracy = finite(latest.accuracy) if latest.accuracy is not None else attempt.accuracy
    return stored


def store_log(session: Session, attempt: Attempt, offset: int, text: str) -> int:
    """Append output that starts at byte `offset`. The first and last part are kept. Returns the bytes seen so far."""
    log = session.get(AttemptLog, attempt.id, with_for_update=True)
    if log is None:
        log = AttemptLog(attempt_id=attempt.id, head="", tail="", total_bytes=0)
        session.add(log)
    data = text.encode()
    end = offset + len(data)
    if end <= log.total_bytes:
        return log.total_bytes
    if offset > log.total_bytes:
        fresh = f"\n[{offset - log.total_bytes} bytes of output did not arrive]\n{text}"
    else:
        fresh = data[log.total_bytes - offset :].decode(errors="replace")
    fresh = fresh.replace("\x00", "\ufffd")
    room = HEAD_CHARS - len(log.head)
    log.head += fresh[:room]
    log.tail = (log.tail + fresh[max(room, 0) :])[-TAIL_CHARS:]
    log.total_bytes = end
    session.flush()
    return end


def storable(metrics: Mapping[str, float]) -> dict[str, float]:
    """What JSON and both databases can hold of a script's numbers and their names."""
    return {name.encode(errors="replace").decode()[:64]: value for name, value in metrics.items() if math.isfinite(value)}


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
