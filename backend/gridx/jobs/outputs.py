"""Files that a script puts into `outputs/`: announced and uploaded by its agent before the update, listed once that is accepted.

They are a stranger's bytes. The server stores them, never reads them, and hands them out as attachments alone.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from gridx.core.errors import GridxError, TooLarge
from gridx.jobs.models import Attempt, Subtask
from gridx.jobs.output_models import Output
from gridx_protocol import Limits

LIMITS = Limits()
_LIVE = ("RUNNING", "VERIFYING", "ACCEPTED")


class TooManyOutputs(GridxError):
    status = 409
    code = "too_many_outputs"


def announce(session: Session, attempt: Attempt, name: str, size: int, sha256: str, now: datetime) -> str:
    """Note a file that is about to be uploaded; returns where to. The same name again takes the earlier one's place.

    Raises:
        TooManyOutputs, TooLarge: over what one attempt may leave, in number or in bytes.
    """
    others = (Output.attempt_id == attempt.id, Output.name != name)
    count, total = session.execute(select(func.count(), func.coalesce(func.sum(Output.size), 0)).where(*others)).one()
    if count >= LIMITS.outputs_count:
        raise TooManyOutputs(f"a script may leave {LIMITS.outputs_count} files in outputs/")
    if total + size > LIMITS.outputs_bytes:
        raise TooLarge(f"the files in outputs/ may have {LIMITS.outputs_bytes} bytes together")
    output = session.scalar(select(Output).where(Output.attempt_id == attempt.id, Output.name == name))
    if output is None:
        key = f"jobs/{attempt.job_id}/outputs/{attempt.id}/{secrets.token_hex(8)}"
        output = Output(attempt_id=attempt.id, job_id=attempt.job_id, name=name, object_key=key)
        session.add(output)
    output.size, output.sha256, output.created_at = size, sha256, now
    session.flush()
    return output.object_key


def accepted(session: Session, job_id: int) -> Sequence[Row[Output, Attempt, Subtask]]:
    """The files of accepted attempts, by round and chunk."""
    return session.execute(
        select(Output, Attempt, Subtask)
        .join(Attempt, Attempt.id == Output.attempt_id)
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Output.job_id == job_id, Attempt.status == "ACCEPTED")
        .order_by(Subtask.id, Output.name)
    ).all()


def needed_keys(session: Session, job_id: int) -> Sequence[str]:
    """Objects that stay: of attempts that were accepted, or still may be."""
    return session.scalars(
        select(Output.object_key).join(Attempt, Attempt.id == Output.attempt_id).where(Output.job_id == job_id, Attempt.status.in_(_LIVE))
    ).all()
