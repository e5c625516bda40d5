"""Jobs and what they are made of: rounds, subtasks, attempts, their metrics, logs and events."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base, BigInt
from gridx.core.lease import Leased

# References of transfers are made from ids, so an id that was deleted must never come back; SQLite would hand it out again.
_IDS_ONCE = {"sqlite_autoincrement": True}


class Job(Leased, Base):
    """A training order. Its lease is held while the rows are dealt to chunks."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("owner_id", "idempotency_key"),
        Index("ix_jobs_status", "status"),
        CheckConstraint("status IN ('PROCESSING', 'RUNNING', 'AGGREGATING', 'COMPLETED', 'FAILED', 'CANCELLED')", name="status"),
        _IDS_ONCE,
    )

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(Text, default=None)
    """Why the job FAILED or was CANCELLED, in words for the buyer."""

    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    script_key: Mapped[str] = mapped_column(String(200))
    script_sha256: Mapped[str] = mapped_column(String(64))
    requirements_key: Mapped[str | None] = mapped_column(String(200))
    arguments: Mapped[list[str]] = mapped_column(JSON)
    hyperparameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    recipe: Mapped[str | None] = mapped_column(String(32), default=None)
    """The `model_type` of a no-code job: its script is one of ours, from `recipes/`. None where the buyer wrote it."""
    mode: Mapped[str] = mapped_column(String(16), default="federated")
    """`federated`: chunks train apart and are merged. `ddp`: all train in step, as ranks of one gang."""
    chunks: Mapped[int]
    chunks_per_round: Mapped[int]
    """Chunks that take part in a round, drawn anew for each."""
    rounds: Mapped[int]
    partitioner: Mapped[str] = mapped_column(String(32))
    schema_key: Mapped[str | None] = mapped_column(String(200), default=None)
    """schema.json: what all chunks must agree on."""
    partitioner_options: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    strategy: Mapped[str] = mapped_column(String(32))
    strategy_options: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    """As validated, the defaults filled in: what a later version's defaults are does not change a running job."""
    seed: Mapped[int]
    min_updates: Mapped[int]
    round_deadline_s: Mapped[int | None] = mapped_column(default=None)
    backups: Mapped[bool] = mapped_column(default=True)
    """Whether a chunk that is late may be given to a second machine."""
    held_out_share: Mapped[float] = mapped_column(default=0.0)
    evaluations: Mapped[int] = mapped_column(default=0)
    """Evaluation subtasks of each round: 0 without held-out rows."""
    early_stopping: Mapped[dict[str, Any] | None] = mapped_column(JSON, default=None)
    initial_model_key: Mapped[str | None] = mapped_column(String(200), default=None)
    """What the buyer gave to start from, as it came: not yet verified."""
    best_round: Mapped[int | None] = mapped_column(default=None)
    """The round whose global model was best on the held-out rows."""
    keep_updates: Mapped[bool] = mapped_column(default=False)
    time_limit_s: Mapped[int]
    needs: Mapped[dict[str, Any]] = mapped_column(JSON)
    needs_ram_bytes: Mapped[int]
    needs_gpus: Mapped[int]
    needs_vram_bytes: Mapped[int]

    units: Mapped[int]
    """Credits that one verified subtask pays."""
    price: Mapped[int]
    total_subtasks: Mapped[int]
    current_round: Mapped[int] = mapped_column(default=0)
    warnings: Mapped[list[str]] = mapped_column(JSON, default=list)

    final_model_key: Mapped[str | None] = mapped_column(String(200), default=None)
    final_model_sha256: Mapped[str | None] = mapped_column(String(64), default=None)
    final_model_bytes: Mapped[int | None] = mapped_column(default=None)
    safetensors_key: Mapped[str | None] = mapped_column(String(200), default=None)
    """The final model again, as safetensors; written shortly after the job has COMPLETED."""
    safetensors_sha256: Mapped[str | None] = mapped_column(String(64), default=None)
    safetensors_bytes: Mapped[int | None] = mapped_column(default=None)

    idempotency_key: Mapped[str | None] = mapped_column(String(255), default=None)
    request_hash: Mapped[str | None] = mapped_column(String(64), default=None)

    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class Round(Leased, Base):
    """One synchronous pass over the chunks. Its lease is held while updates are merged."""

    __tablename__ = "rounds"
    __table_args__ = (UniqueConstraint("job_id", "number"),)

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    """From 1. A round 0 holds the initial model that the buyer gave."""
    reference: Mapped[dict[str, Any] | None] = mapped_column(JSON, default=None)
    """Keys, shapes and dtypes that every update of this round must have; None until round 1 has agreed on them."""
    global_model_key: Mapped[str | None] = mapped_column(String(200), default=None)
    global_model_sha256: Mapped[str | None] = mapped_column(String(64), default=None)
    global_model_bytes: Mapped[int | None] = mapped_column(default=None)
    state_key: Mapped[str | None] = mapped_column(String(200), default=None)
    """The strategy's own state after this round (momenta), where it has any."""
    updates_used: Mapped[int | None] = mapped_column(default=None)
    rows_used: Mapped[int | None] = mapped_column(default=None)
    convergence_delta: Mapped[float | None] = mapped_column(default=None)
    step_norm: Mapped[float | None] = mapped_column(default=None)
    evaluation: Mapped[dict[str, Any] | None] = mapped_column(JSON, default=None)
    """What the script's evaluate() said of the global model: `metrics`, `rows`, `agents`, and `spread` where two agents differ."""
    deadline_at: Mapped[datetime | None] = mapped_column(default=None)
    is_retried: Mapped[bool] = mapped_column(default=False)
    """Whether the deadline came once already with too few updates."""
    opened_at: Mapped[datetime]
    closed_at: Mapped[datetime | None] = mapped_column(default=None)


class Subtask(Base):
    """One chunk's work in one round."""

    __tablename__ = "subtasks"
    __table_args__ = (
        UniqueConstraint("round_id", "kind", "chunk_index"),
        Index("ix_subtasks_job_status", "job_id", "status", "id"),
        CheckConstraint("status IN ('PENDING', 'RUNNING', 'VERIFYING', 'COMPLETED', 'FAILED', 'CANCELLED')", name="status"),
        _IDS_ONCE,
    )

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id", ondelete="CASCADE"), index=True)
    round_number: Mapped[int]
    chunk_index: Mapped[int]
    kind: Mapped[str] = mapped_column(String(16), default="train")
    status: Mapped[str] = mapped_column(String(16))
    rows: Mapped[int]
    attempts_made: Mapped[int] = mapped_column(default=0)
    not_before: Mapped[datetime | None] = mapped_column(default=None)
    """Not handed out earlier than this, after trouble on an agent's side."""
    wants_backup: Mapped[bool] = mapped_column(default=False)
    """RUNNING, but so late that a second machine may try as well."""
    reason: Mapped[str | None] = mapped_column(Text, default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class Attempt(Leased, Base):
    """One agent's try at a subtask.

    `lease_token` and `lease_expires_at` are the agent's; `work_token` is held by the background process that verifies the upload.
    Status: RUNNING, VERIFYING, ACCEPTED, REFUSED (by the server), FAILED (said by the agent), LOST (lease expired), CANCELLED.
    """

    __tablename__ = "attempts"
    __table_args__ = (
        Index("ix_attempts_status", "status", "lease_expires_at"),
        Index("ix_attempts_job", "job_id", "status"),
        # One live attempt per agent and slot; one and one backup per subtask; one accepted update, whatever races.
        Index(
            "uq_attempts_agent_running",
            "agent_id",
            "slot",
            unique=True,
            sqlite_where=text("status = 'RUNNING'"),
            postgresql_where=text("status = 'RUNNING'"),
        ),
        Index(
            "uq_attempts_subtask_live",
            "subtask_id",
            "is_backup",
            unique=True,
            sqlite_where=text("status IN ('RUNNING', 'VERIFYING')"),
            postgresql_where=text("status IN ('RUNNING', 'VERIFYING')"),
        ),
        Index(
            "uq_attempts_subtask_accepted",
            "subtask_id",
            unique=True,
            sqlite_where=text("status = 'ACCEPTED'"),
            postgresql_where=text("status = 'ACCEPTED'"),
        ),
        _IDS_ONCE,
    )

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    buyer_id: Mapped[int]
    subtask_id: Mapped[int] = mapped_column(ForeignKey("subtasks.id", ondelete="CASCADE"), index=True)
    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id"))
    seller_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    slot: Mapped[int] = mapped_column(default=0)
    """0: the agent's ordinary work. From 1: one of the places for ranks that it offers."""
    number: Mapped[int]
    is_backup: Mapped[bool] = mapped_column(default=False)
    """Began beside another attempt at the same subtask."""
    status: Mapped[str] = mapped_column(String(16))

    lease_token: Mapped[str] = mapped_column(String(64))
    lease_expires_at: Mapped[datetime]
    deadline_at: Mapped[datetime]

    phase: Mapped[str | None] = mapped_column(String(16), default=None)
    progress: Mapped[float | None] = mapped_column(default=None)
    epoch: Mapped[int | None] = mapped_column(default=None)
    loss: Mapped[float | None] = mapped_column(default=None)
    accuracy: Mapped[float | None] = mapped_column(default=None)
    metrics: Mapped[dict[str, float] | None] = mapped_column(JSON, default=None)
    train_s: Mapped[float | None] = mapped_column(default=None)

    upload_key: Mapped[str]
    upload_sha256: Mapped[str | None] = mapped_column(String(64), default=None)
    upload_bytes: Mapped[int | None] = mapped_column(default=None)
    update_key: Mapped[str | None] = mapped_column(String(200), default=None)
    """The canonical file that the server wrote itself from the upload. Uploaded bytes are never served."""
    summary: Mapped[dict[str, Any] | None] = mapped_column(JSON, default=None)
    """What the upload holds; its size and SHA-256 are those of the canonical file."""
    distance: Mapped[float | None] = mapped_column(default=None)
    """L2 distance of this update to the merged model."""

    fault: Mapped[str | None] = mapped_column(String(64), default=None)
    """A stable code of what went wrong; the same one from two sellers is the script's fault."""
    reason: Mapped[str | None] = mapped_column(Text, default=None)
    paid: Mapped[int] = mapped_column(default=0)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class Metric(Base):
    """One report of a script."""

    __tablename__ = "metrics"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(index=True)
    epoch: Mapped[int | None]
    loss: Mapped[float | None]
    accuracy: Mapped[float | None]
    more: Mapped[dict[str, float]] = mapped_column(JSON)
    at: Mapped[datetime]


class AttemptLog(Base):
    """What a script printed: the first and the last part, bounded."""

    __tablename__ = "attempt_logs"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    head: Mapped[str] = mapped_column(Text, default="")
    tail: Mapped[str] = mapped_column(Text, default="")
    total_bytes: Mapped[int] = mapped_column(default=0)


class JobEvent(Base):
    """A line of the job's timeline."""

    __tablename__ = "job_events"

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    what: Mapped[str] = mapped_column(String(16))
    """`job`, `round`, `subtask` or `attempt`."""
    subtask_id: Mapped[int | None] = mapped_column(default=None)
    old: Mapped[str | None] = mapped_column(String(16), default=None)
    new: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)


class BackgroundTick(Base):
    """When background work last ran, so that a server that was away can tell for how long."""

    __tablename__ = "background_ticks"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
