"""Enrolment keys, and the machines that registered with them."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base, BigInt


class EnrolmentKey(Base):
    """What a seller hands to a machine so that it may register in the seller's name."""

    __tablename__ = "enrolment_keys"

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    label: Mapped[str] = mapped_column(String(200))
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)


class Agent(Base):
    """One registered machine. Removed ones stay for the history of what they did; their token is gone."""

    __tablename__ = "agents"
    __table_args__ = (Index("ix_agents_seen", "last_seen_at"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    key_id: Mapped[int] = mapped_column(ForeignKey("enrolment_keys.id"), index=True)
    token_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    hardware: Mapped[dict[str, Any]] = mapped_column(JSON)
    ram_bytes: Mapped[int]
    gpu_count: Mapped[int]
    vram_bytes: Mapped[int]
    registered_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    removed_at: Mapped[datetime | None] = mapped_column(default=None)
    ban_reason: Mapped[str | None] = mapped_column(Text, default=None)
    accepts: Mapped[str] = mapped_column(String(16), default="all")
    """`recipes`: only jobs whose script is one of the server's own."""
    paused: Mapped[str | None] = mapped_column(String(200), default=None)
    """Why it asks for no work, as its provider set it."""
    doctor: Mapped[dict[str, Any] | None] = mapped_column(JSON, default=None)
    """The latest report of `gridx-worker doctor`; `at` is the server's time of it."""
    quarantined_until: Mapped[datetime | None] = mapped_column(default=None)
    quarantine_reason: Mapped[str | None] = mapped_column(Text, default=None)
    """Why it gets no work for a while, and what its provider can do."""

    def takes_work(self, now: datetime) -> bool:
        """Neither paused by its provider nor in quarantine."""
        return self.paused is None and (self.quarantined_until is None or self.quarantined_until <= now)
