"""Files that a job made and its buyer may download."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from gridx.jobs import outputs
from gridx.jobs.models import Attempt, Job, Round, Subtask


@dataclass(frozen=True)
class Artifact:
    """One stored object, and what it is."""

    kind: str
    key: str
    filename: str
    round: int | None = None
    subtask_id: int | None = None
    chunk: int | None = None
    agent_id: str | None = None
    epoch: int | None = None
    size: int | None = None
    sha256: str | None = None
    created_at: datetime | None = None


def list_artifacts(session: Session, job: Job) -> list[Artifact]:
    """Everything that is kept of a job, newest kind first: final model, global models, the last updates, script, requirements."""
    found: list[Artifact] = []
    if job.final_model_key:
        found.append(
            Artifact(
                "final_model",
                job.final_model_key,
                "final_model.pth",
                round=job.current_round,
                size=job.final_model_bytes,
                sha256=job.final_model_sha256,
                created_at=job.finished_at,
            )
        )
    if job.safetensors_key:
        found.append(
            Artifact(
                "safetensors",
                job.safetensors_key,
                "final_model.safetensors",
                round=job.current_round,
                size=job.safetensors_bytes,
                sha256=job.safetensors_sha256,
                created_at=job.finished_at,
            )
        )
    for row in session.scalars(select(Round).where(Round.job_id == job.id, Round.global_model_key.is_not(None)).order_by(Round.number)):
        kind = "initial_model" if row.number == 0 else "best_model" if row.number == job.best_round else "global_model"
        found.append(
            Artifact(
                kind,
                row.global_model_key or "",
                f"{kind}.pth" if row.number == 0 else f"{kind}_round_{row.number}.pth",
                round=row.number,
                size=row.global_model_bytes,
                sha256=row.global_model_sha256,
                created_at=row.closed_at,
            )
        )
    updates = session.execute(
        select(Attempt, Subtask)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job.id, Attempt.status == "ACCEPTED", Attempt.update_key.is_not(None))
        .order_by(Subtask.id)
    ).all()
    for attempt, subtask in updates:
        summary = attempt.summary or {}
        found.append(
            Artifact(
                "update",
                attempt.update_key or "",
                f"update_round_{subtask.round_number}_chunk_{subtask.chunk_index}.pth",
                round=subtask.round_number,
                subtask_id=subtask.id,
                chunk=subtask.chunk_index,
                agent_id=attempt.agent_id,
                epoch=attempt.epoch,
                size=summary.get("size"),
                sha256=summary.get("sha256"),
                created_at=attempt.finished_at,
            )
        )
    for output, attempt, subtask in outputs.accepted(session, job.id):
        found.append(
            Artifact(
                "output",
                output.object_key,
                output.name,
                round=subtask.round_number,
                subtask_id=subtask.id,
                chunk=subtask.chunk_index,
                agent_id=attempt.agent_id,
                epoch=attempt.epoch,
                size=output.size,
                sha256=output.sha256,
                created_at=output.created_at,
            )
        )
    found.append(Artifact("script", job.script_key, "train.py", sha256=job.script_sha256, created_at=job.created_at))
    if job.schema_key:
        found.append(Artifact("schema", job.schema_key, "schema.json", created_at=job.created_at))
    if job.requirements_key:
        found.append(Artifact("requirements", job.requirements_key, "requirements.txt", created_at=job.created_at))
    return found
