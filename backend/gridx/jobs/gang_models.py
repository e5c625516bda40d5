"""Tables of synchronous training: gangs, their members, checkpoints, and the orchestrator's sign of life."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base, BigInt
from gridx.core.lease import Leased

LIVE = ("FORMING", "TRAINING")


class RankSlot(Base):
    """A place for one rank that an agent offers by asking for work. Agents that name the same `place` reach one another."""

    __tablename__ = "rank_slots"

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id"), primary_key=True)
    slot: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(String(255))
    address: Mapped[str] = mapped_column(String(255))
    """Under which the others reach it; empty where all share one machine."""
    asked_at: Mapped[datetime]


class Gang(Base):
    """One try at a synchronous job: as many attempts as the job has ranks, reserved together, that begin and end together.

    Status: FORMING (places are reserved, not all members are ready), TRAINING, DONE, BROKEN.
    """

    __tablename__ = "gangs"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        Index(
            "uq_gangs_live",
            "job_id",
            unique=True,
            sqlite_where=text("status IN ('FORMING', 'TRAINING')"),
            postgresql_where=text("status IN ('FORMING', 'TRAINING')"),
        ),
    )

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    number: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    place: Mapped[str] = mapped_column(String(255))
    """The network in which all members reach one another."""
    secret: Mapped[str] = mapped_column(String(64))
    """Known to the members alone; names what they share on one machine."""
    master_address: Mapped[str] = mapped_column(String(255), default="")
    master_port: Mapped[int] = mapped_column(default=0)
    checkpoint_id: Mapped[int | None] = mapped_column(default=None)
    """What it starts from."""
    fault: Mapped[str | None] = mapped_column(String(64), default=None)
    culprit_id: Mapped[int | None] = mapped_column(default=None)
    """The attempt that ended it."""
    reason: Mapped[str | None] = mapped_column(Text, default=None)
    created_at: Mapped[datetime]
    register_until: Mapped[datetime]
    ready_until: Mapped[datetime]
    started_at: Mapped[datetime | None] = mapped_column(default=None)
    ended_at: Mapped[datetime | None] = mapped_column(default=None)


class Member(Base):
    """An attempt's place in its gang."""

    __tablename__ = "gang_members"
    __table_args__ = (UniqueConstraint("gang_id", "rank"),)

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    gang_id: Mapped[int] = mapped_column(ForeignKey("gangs.id", ondelete="CASCADE"), index=True)
    rank: Mapped[int]
    local_rank: Mapped[int]
    instance: Mapped[str | None] = mapped_column(String(128), default=None)
    """Tells the process that registered from a later one of the same agent."""
    address: Mapped[str] = mapped_column(String(255), default="")
    port: Mapped[int] = mapped_column(default=0)
    registered_at: Mapped[datetime | None] = mapped_column(default=None)
    ready_at: Mapped[datetime | None] = mapped_column(default=None)
    has_reached_all: Mapped[bool] = mapped_column(default=False)
    step: Mapped[int | None] = mapped_column(default=None)
    samples_per_s: Mapped[float | None] = mapped_column(default=None)
    seen_at: Mapped[datetime | None] = mapped_column(default=None)


class Checkpoint(Leased, Base):
    """A state that rank 0 saved while it trained. Status: UPLOADED, SEALED (checked, and written anew by us), REFUSED."""

    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("gang_id", "number"), Index("ix_checkpoints_status", "status", "id"))

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    gang_id: Mapped[int] = mapped_column(ForeignKey("gangs.id", ondelete="CASCADE"))
    number: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    upload_key: Mapped[str] = mapped_column(String(200))
    upload_sha256: Mapped[str] = mapped_column(String(64))
    upload_bytes: Mapped[int]
    key: Mapped[str | None] = mapped_column(String(200), default=None)
    sha256: Mapped[str | None] = mapped_column(String(64), default=None)
    bytes: Mapped[int | None] = mapped_column(default=None)
    reason: Mapped[str | None] = mapped_column(Text, default=None)
    created_at: Mapped[datetime]


class OrchestratorState(Base):
    """The orchestrator's sign of life: one row."""

    __tablename__ = "orchestrator_state"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    port: Mapped[int]
    is_secure: Mapped[bool]
    problem: Mapped[str | None] = mapped_column(Text)
    """Why it does not serve, in words; None while it does."""
