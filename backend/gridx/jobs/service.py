"""The buyer's side of a job: submit, cancel, delete."""

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.accounts.service import Actor
from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.aggregation.strategies.options import parse_options
from gridx.core.db import Database
from gridx.core.errors import GridxError, Invalid, NotFound
from gridx.core.settings import Settings
from gridx.core.wakeup import notify
from gridx.datasets import partitioner_options
from gridx.datasets import service as datasets
from gridx.datasets.models import Dataset
from gridx.datasets.partitioners import held_out_rows
from gridx.jobs import gangs
from gridx.jobs.models import Attempt, Job, Round
from gridx.jobs.options import JobOptions
from gridx.jobs.rules import check_options, chunks_per_round, price_of
from gridx.jobs.scripts import ScriptRefused, check_requirements, check_script, has_evaluate, strategy_hints
from gridx.jobs.states import JOB_ENDS, lock_job, record
from gridx.ledger import accounts as ledger_accounts
from gridx.ledger import transfers as ledger
from gridx.storage.base import ObjectStore

_log = structlog.get_logger()


class NotEnoughIdleAgents(GridxError):
    status = 409
    code = "not_enough_idle_agents"


class IdempotencyConflict(GridxError):
    status = 409
    code = "idempotency_conflict"


class JobNotFinished(GridxError):
    status = 409
    code = "job_not_finished"


class TooFewRows(GridxError):
    status = 422
    code = "too_few_rows"


@dataclass(frozen=True)
class Submission:
    """A job as its buyer ordered it. `script` and `requirements` are the bytes of the files."""

    options: JobOptions
    dataset_id: int
    script: bytes
    requirements: bytes
    idempotency_key: str | None = None
    request_hash: str | None = None
    model: Path | None = None
    """A file with the initial model, as its buyer sent it."""
    warnings: Sequence[str] = ()
    """What the buyer is to be told of the data."""


@dataclass(frozen=True)
class Files:
    """Where a submission's files were stored."""

    script: str
    requirements: str | None
    model: str | None


@dataclass(frozen=True)
class Submitted:
    job_id: int
    status: str
    price: int
    idle_agents: int
    warnings: list[str]


def check_order(database: Database, actor: Actor, options: JobOptions, script: bytes, requirements: bytes) -> None:
    """All that can be refused before a large dataset is stored. Raises as `submit` does."""
    check_options(options)
    _check_script(options, script)
    check_requirements(requirements)
    with database.read() as session:
        check_funds(session, actor, options)


def check_funds(session: Session, actor: Actor, options: JobOptions) -> None:
    """Early look at the wallet, before a large body is stored. The hold at submission decides. Raises InsufficientFunds."""
    _, price = price_of(options)
    wallet = ledger_accounts.wallet_code(actor.id)
    balance = ledger_accounts.balance(session, wallet)
    if balance < price:
        raise ledger.InsufficientFunds(wallet, price, balance)


def replayed(
    session: Session, actor: Actor, key: str | None, request_hash: str | None, now: datetime, settings: Settings
) -> Submitted | None:
    """The answer that an earlier call with this Idempotency-Key got. Raises IdempotencyConflict when its body was another."""
    if key is None:
        return None
    job = session.scalar(select(Job).where(Job.owner_id == actor.id, Job.idempotency_key == key))
    if job is None:
        return None
    if job.request_hash != request_hash:
        raise IdempotencyConflict("this Idempotency-Key was used for another job; take a new key")
    return Submitted(job.id, "PROCESSING", job.price, idle_agents(session, now, settings), job.warnings)


def submit(database: Database, store: ObjectStore, actor: Actor, order: Submission, now: datetime, settings: Settings) -> Submitted:
    """Take a job: everything is checked and stored first, then one transaction holds the price and makes the job.

    Raises:
        ScriptRefused, RequirementsRefused, Invalid, TooFewRows: the order is malformed; no credit moved.
        InsufficientFunds: 402 with price and balance.
        NotEnoughIdleAgents: `require_idle` was asked for and cannot be met.
        NotFound: the dataset is not this buyer's.
    """
    options = order.options
    check_options(options)
    warnings = [*order.warnings, *_check_script(options, order.script), *strategy_hints(options.strategy, order.script)]
    requirements = check_requirements(order.requirements)
    with database.read() as session:
        earlier = replayed(session, actor, order.idempotency_key, order.request_hash, now, settings)
        if earlier is not None:
            return earlier
        _usable_dataset(session, actor, order)
        check_funds(session, actor, options)
        initial_key = _initial_round(session, actor, options)
    folder = f"submissions/{secrets.token_hex(12)}"
    script_key = _store(store, f"{folder}/train.py", order.script)
    requirements_key = _store(store, f"{folder}/requirements.txt", "\n".join(requirements).encode()) if requirements else None
    if order.model is not None:
        initial_key = f"{folder}/initial.pth"
        store.put_file(initial_key, order.model)
    files = Files(script_key, requirements_key, initial_key)
    try:
        with database.write() as session:
            return _insert(session, actor, order, files, warnings, now, settings)
    except IntegrityError:
        # Two calls with the same Idempotency-Key at once: the other one made the job.
        with database.read() as session:
            earlier = replayed(session, actor, order.idempotency_key, order.request_hash, now, settings)
        if earlier is None:
            raise
        return earlier


def cancel(session: Session, actor: Actor, job_id: int, now: datetime) -> Job:
    """End a job on its buyer's wish. Cancelling a cancelled job changes nothing; a finished one is refused."""
    job = owned_job(session, actor, job_id)
    job = lock_job(session, job.id)
    if job.status == "CANCELLED":
        return job
    if job.status in JOB_ENDS:
        raise JobNotFinished(f"job {job.id} is already {job.status}; there is nothing to cancel")
    gangs.cancel_job(session, job, now)
    return job


def delete(session: Session, actor: Actor, job_id: int) -> list[str]:
    """Remove a finished job and what it left. Credits' history stays. Returns the storage prefixes that may go now."""
    job = lock_job(session, owned_job(session, actor, job_id).id)
    verifying = session.scalar(select(func.count()).select_from(Attempt).where(Attempt.job_id == job.id, Attempt.status == "VERIFYING"))
    if job.status not in JOB_ENDS or verifying:
        raise JobNotFinished(f"job {job.id} is {job.status}; cancel it first, or wait until its last uploads are verified")
    prefixes = [f"jobs/{job.id}/", job.script_key.rsplit("/", 1)[0] + "/"]
    session.delete(job)
    notify(session)
    return prefixes


def owned_job(session: Session, actor: Actor, job_id: int) -> Job:
    """A job of this buyer. Somebody else's looks like none at all."""
    job = session.get(Job, job_id)
    if job is None or job.owner_id != actor.id:
        raise NotFound(f"you have no job {job_id}")
    return job


def idle_agents(session: Session, now: datetime, settings: Settings) -> int:
    """Agents that are online and hold no attempt."""
    busy = select(Attempt.agent_id).where(Attempt.status == "RUNNING")
    online = agents.is_online(now, settings.offline_after_s)
    return session.scalar(select(func.count()).select_from(Agent).where(online, Agent.id.not_in(busy))) or 0


def hash_request(options: JobOptions, *parts: bytes | str | int) -> str:
    """SHA-256 over all that makes two submissions the same."""
    digest = hashlib.sha256(json.dumps(options.model_dump(mode="json"), sort_keys=True).encode())
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _usable_dataset(session: Session, actor: Actor, order: Submission) -> Dataset:
    dataset = datasets.get_dataset(session, actor, order.dataset_id)
    held = held_out_rows(dataset.rows, order.options.held_out) if order.options.held_out else 0
    if dataset.rows - held < order.options.chunks:
        without = f" ({held} of them held out)" if held else ""
        raise TooFewRows(f"chunks: the dataset has {dataset.rows} rows{without}, too few for {order.options.chunks} chunks")
    column = order.options.partitioner_options.get("column")
    if column is not None and column not in dataset.columns:
        raise Invalid(f"partitioner_options.column: the dataset has no column {column!r}; it has: {', '.join(dataset.columns[:50])}"[:2000])
    return dataset


def _insert(
    session: Session,
    actor: Actor,
    order: Submission,
    files: Files,
    warnings: list[str],
    now: datetime,
    settings: Settings,
) -> Submitted:
    options = order.options
    dataset = _usable_dataset(session, actor, order)
    idle = idle_agents(session, now, settings)
    if options.require_idle and idle < options.chunks:
        raise NotEnoughIdleAgents(
            f"{options.chunks} idle agents are asked for and {idle} are idle now; wait, or submit without require_idle"
        )
    units, price = price_of(options)
    strategy = parse_options(options.strategy, options.strategy_options)
    job = Job(
        owner_id=actor.id,
        title=options.title,
        status="PROCESSING",
        dataset_id=dataset.id,
        script_key=files.script,
        script_sha256=hashlib.sha256(order.script).hexdigest(),
        requirements_key=files.requirements,
        initial_model_key=files.model,
        arguments=options.arguments,
        hyperparameters=options.hyperparameters,
        recipe=options.model_type,
        mode=options.mode,
        chunks=options.chunks,
        chunks_per_round=chunks_per_round(options),
        rounds=options.rounds,
        partitioner=options.partitioner,
        partitioner_options=partitioner_options.parse_options(options.partitioner, options.partitioner_options).model_dump(),
        strategy=options.strategy,
        strategy_options=strategy.model_dump(),
        seed=options.seed if options.seed is not None else secrets.randbelow(2**31),
        # A round that closed with fewer updates than the strategy needs could not be merged.
        min_updates=max(options.min_updates or chunks_per_round(options), strategy.least_updates()),
        round_deadline_s=options.round_deadline_s,
        backups=options.backups,
        held_out_share=options.held_out,
        evaluations=options.evaluations if options.held_out else 0,
        early_stopping=options.early_stopping.model_dump() if options.early_stopping else None,
        keep_updates=options.keep_updates,
        time_limit_s=options.time_limit_s,
        needs=options.needs.model_dump(),
        needs_ram_bytes=options.needs.ram_bytes,
        needs_gpus=1 if options.needs.gpu or options.needs.vram_bytes else 0,
        needs_vram_bytes=options.needs.vram_bytes,
        units=units,
        price=price,
        total_subtasks=chunks_per_round(options) * options.rounds,
        warnings=warnings,
        idempotency_key=order.idempotency_key,
        request_hash=order.request_hash,
        created_at=now,
    )
    session.add(job)
    session.flush()
    is_held = ledger.hold(
        session,
        reference=f"hold:{job.id}",
        wallet=ledger_accounts.wallet_code(actor.id),
        escrow=ledger_accounts.escrow_code(job.id),
        amount=price,
        reason=f"job {job.id}: {options.title}"[:500],
        now=now,
    )
    if not is_held:
        raise RuntimeError(f"the price of job {job.id} was held before: its id is not new")
    record(session, job.id, now=now, what="job", new="PROCESSING", text=f"submitted; {price} credits held")
    notify(session)
    _log.info("submitted", job=job.id, user=actor.id, price=price, chunks=options.chunks, rounds=options.rounds)
    return Submitted(job.id, job.status, price, idle, warnings)


def _store(store: ObjectStore, key: str, data: bytes) -> str:
    with TemporaryDirectory(prefix="gridx-submit-") as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        store.put_file(key, path)
    return key


def _check_script(options: JobOptions, code: bytes) -> list[str]:
    """As `check_script`, and for held-out rows the script must be able to evaluate a model."""
    warnings = check_script(code)
    if options.held_out and not has_evaluate(code):
        raise ScriptRefused(
            "held_out: the script has no top-level function evaluate(model_path, csv_path) that could score a model on held-out rows"
        )
    return warnings


def _initial_round(session: Session, actor: Actor, options: JobOptions) -> str | None:
    """The stored model of the round that a job starts from. Raises NotFound when there is none of this buyer's."""
    if options.initial_job_id is None:
        return None
    job = owned_job(session, actor, options.initial_job_id)
    number = options.initial_round if options.initial_round is not None else job.best_round or job.current_round
    found = session.scalar(select(Round.global_model_key).where(Round.job_id == job.id, Round.number == number))
    if found is None:
        raise NotFound(f"initial_round: job {job.id} has no model of round {number}")
    return found
