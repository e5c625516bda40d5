"""What a job's escrow pays to sellers. All functions here run inside the caller's transaction."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from gridx.jobs.models import Attempt, Job
from gridx.ledger import accounts as ledger_accounts
from gridx.ledger import transfers as ledger


def lock_accounts(session: Session, job: Job, seller_ids: Iterable[int]) -> None:
    """Lock all accounts that a transaction may move credits between, in one order for everybody."""
    wallets = {ledger_accounts.wallet_code(user_id) for user_id in (job.owner_id, *seller_ids)}
    ledger.lock(session, {ledger_accounts.escrow_code(job.id), *wallets})


def pay(session: Session, job: Job, attempt: Attempt, amount: int, now: datetime, *, reference: str, reason: str) -> None:
    """Pay an attempt's seller, once for each reference."""
    ledger.settle(
        session,
        reference=reference,
        escrow=ledger_accounts.escrow_code(job.id),
        wallet=ledger_accounts.wallet_code(attempt.seller_id),
        amount=amount,
        reason=f"job {job.id}{reason}",
        now=now,
    )
    attempt.paid = amount


def pay_reproduced(session: Session, job: Job, attempts: Sequence[Attempt], now: datetime, *, reserved: int = 0) -> None:
    """Pay the first attempt of each seller who showed the script's fault, as far as the escrow reaches beyond `reserved` credits."""
    escrow = ledger_accounts.escrow_code(job.id)
    paid: set[int] = set()
    for attempt in attempts:
        amount = min(job.units, ledger_accounts.balance(session, escrow) - reserved)
        if attempt.seller_id in paid or amount <= 0:
            continue
        paid.add(attempt.seller_id)
        pay(session, job, attempt, amount, now, reference=f"attempt:{attempt.id}", reason=": showed that the script fails")
