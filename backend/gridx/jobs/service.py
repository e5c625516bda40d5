"""The buyer's side of a job: submit, cancel, delete."""

import hashlib
import json
import math
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.accounts.service import Actor
from gridx.agents import service as agents
from gridx.agents.models import Agent
from gridx.aggregation.strategies.options import OPTIONS as STRATEGY_OPTIONS
from gridx.aggregation.strategies.options import parse_options
from gridx.core.db import Database
from gridx.core.errors import GridxError, Invalid, NotFound
from gridx.core.settings import Settings
from gridx.core.wakeup import notify
from gridx.datasets import partitioner_options
from gridx.datasets.models import Dataset
from gridx.jobs import rounds
from gridx.jobs.models import Attempt, Job
from gridx.jobs.schemas import JobOptions
from gridx.jobs.scripts import check_requirements, check_script, strategy_hints
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


@dataclass(frozen=True)
class Submitted:
    job_id: int
    status: str
    price: int
    idle_agents: int
    warnings: list[str]


def price_of(options: JobOptions) -> tuple[int, int]:
    """Credits a subtask pays (hours of time limit, rounded up) and the price of the whole job."""
    units = math.ceil(options.time_limit_s / 3600)
    return units, units * options.rounds * options.chunks


def check_options(options: JobOptions) -> None:
    """Rules between fields. Raises Invalid naming every field that is wrong."""
    problems: list[str] = []
    problems += _partitioner_problems(options)
    problems += _strategy_problems(options)
    if options.min_updates is not None and options.min_updates > options.chunks:
        problems.append(f"min_updates: {options.min_updates} is more than the {options.chunks} chunks")
    if any("\x00" in argument for argument in options.arguments):
        problems.append("arguments: NUL is not allowed")
    if problems:
        raise Invalid("; ".join(problems))


def _partitioner_problems(options: JobOptions) -> list[str]:
    if options.partitioner not in partitioner_options.OPTIONS:
        return [f"partitioner: {options.partitioner!r} is not one of {', '.join(partitioner_options.OPTIONS)}"]
    try:
        parsed = partitioner_options.parse_options(options.partitioner, options.partitioner_options)
    except ValidationError as error:
        return _named("partitioner_options", error)
    problem = parsed.problem(options.chunks)
    return [f"partitioner_options.{problem}"] if problem else []


def _named(field: str, error: ValidationError) -> list[str]:
    return [f"{field}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]


def _strategy_problems(options: JobOptions) -> list[str]:
    if options.strategy not in STRATEGY_OPTIONS:
        return [f"strategy: {options.strategy!r} is not one of {', '.join(STRATEGY_OPTIONS)}"]
    try:
        parsed = parse_options(options.strategy, options.strategy_options)
    except ValidationError as error:
        return _named("strategy_options", error)
    problems: list[str] = []
    if options.chunks < (least := parsed.least_updates()):
        problems.append(f"strategy_options.f: with it {options.strategy} needs {least} chunks or more; this job has {options.chunks}")
    if options.strategy == "diloco" and options.rounds == 1:
        problems.append("rounds: diloco keeps a momentum from round to round and needs 2 rounds or more")
    return problems


def check_order(database: Database, actor: Actor, options: JobOptions, script: bytes, requirements: bytes) -> None:
    """All that can be refused before a large dataset is stored. Raises as `submit` does."""
    check_options(options)
    check_script(script)
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
    warnings = check_script(order.script) + strategy_hints(options.strategy, order.script)
    requirements = check_requirements(order.requirements)
    with database.read() as session:
        earlier = replayed(session, actor, order.idempotency_key, order.request_hash, now, settings)
        if earlier is not None:
            return earlier
        _usable_dataset(session, actor, order)
        check_funds(session, actor, options)
    folder = f"submissions/{secrets.token_hex(12)}"
    script_key = _store(store, f"{folder}/train.py", order.script)
    requirements_key = _store(store, f"{folder}/requirements.txt", "\n".join(requirements).encode()) if requirements else None
    try:
        with database.write() as session:
            return _insert(session, actor, order, script_key, requirements_key, warnings, now, settings)
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
    rounds.cancel_job(session, job, now)
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
    dataset = session.get(Dataset, order.dataset_id)
    if dataset is None or dataset.owner_id != actor.id or dataset.deleted_at is not None:
        raise NotFound(f"you have no dataset {order.dataset_id}")
    if dataset.rows < order.options.chunks:
        raise TooFewRows(f"chunks: the dataset has {dataset.rows} rows, too few for {order.options.chunks} chunks")
    column = order.options.partitioner_options.get("column")
    if column is not None and column not in dataset.columns:
        raise Invalid(f"partitioner_options.column: the dataset has no column {column!r}; it has: {', '.join(dataset.columns[:50])}"[:2000])
    return dataset


def _insert(
    session: Session,
    actor: Actor,
    order: Submission,
    script_key: str,
    requirements_key: str | None,
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
        script_key=script_key,
        script_sha256=hashlib.sha256(order.script).hexdigest(),
        requirements_key=requirements_key,
        arguments=options.arguments,
        hyperparameters=options.hyperparameters,
        chunks=options.chunks,
        rounds=options.rounds,
        partitioner=options.partitioner,
        partitioner_options=partitioner_options.parse_options(options.partitioner, options.partitioner_options).model_dump(),
        strategy=options.strategy,
        strategy_options=strategy.model_dump(),
        seed=options.seed if options.seed is not None else secrets.randbelow(2**31),
        # A round that closed with fewer updates than the strategy needs could not be merged.
        min_updates=max(options.min_updates or options.chunks, strategy.least_updates()),
        keep_updates=options.keep_updates,
        time_limit_s=options.time_limit_s,
        needs=options.needs.model_dump(),
        needs_ram_bytes=options.needs.ram_bytes,
        needs_gpus=1 if options.needs.gpu or options.needs.vram_bytes else 0,
        needs_vram_bytes=options.needs.vram_bytes,
        units=units,
        price=price,
        total_subtasks=options.chunks * options.rounds,
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
