"""Files that scripts leave beside their models."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gridx.core.db import Base, BigInt


class Output(Base):
    """One file from a script's folder `outputs/`, as its agent announced it."""

    __tablename__ = "outputs"
    __table_args__ = (UniqueConstraint("attempt_id", "name"),)

    id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    object_key: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[datetime]
