"""Limits on guessing passwords, per address and per place, counted in the database and so across processes.

An attempt is counted before the password is looked at and forgiven when it was right: guesses made at the same moment count as well.
"""

import ipaddress
import math
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, delete, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from gridx.accounts.models import LoginFailure
from gridx.core.errors import TooManyAttempts
from gridx.core.tokens import hash_secret

WINDOW = timedelta(minutes=15)
MOST_PER_EMAIL = 10
MOST_PER_IP = 50


def count_attempt(session: Session, *, email: str, ip: str, now: datetime) -> None:
    """Count one attempt. Raises TooManyAttempts, with the seconds to wait, when either limit is passed.

    The caller commits in both cases.
    """
    limits = _limits(email, ip)
    over = [expires for key in sorted(limits) for count, expires in [_raise_count(session, key, now)] if count > limits[key]]
    if over:
        wait_s = max(1, math.ceil((max(over) - now).total_seconds()))
        raise TooManyAttempts(f"too many attempts to log in; try again in {math.ceil(wait_s / 60)} minutes", wait_s)


def forgive_attempt(session: Session, *, email: str, ip: str) -> None:
    """The attempt was right: the address starts from 0 again, the place gets this one back."""
    session.execute(delete(LoginFailure).where(LoginFailure.key == _email_key(email)))
    session.execute(
        update(LoginFailure).where(LoginFailure.key == _ip_key(ip), LoginFailure.count > 0).values(count=LoginFailure.count - 1)
    )


def sweep_login_failures(session: Session, now: datetime) -> None:
    """Forget windows that have ended."""
    session.execute(delete(LoginFailure).where(LoginFailure.expires_at <= now))


def _limits(email: str, ip: str) -> dict[str, int]:
    return {_email_key(email): MOST_PER_EMAIL, _ip_key(ip): MOST_PER_IP}


def _email_key(email: str) -> str:
    return hash_secret(f"email:{email}")


def _ip_key(ip: str) -> str:
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return hash_secret(f"ip:{ip}")
    if isinstance(address, ipaddress.IPv6Address):
        # One customer has a whole /64.
        return hash_secret(f"ip:{ipaddress.ip_network((address, 64), strict=False)}")
    return hash_secret(f"ip:{address}")


def _raise_count(session: Session, key: str, now: datetime) -> tuple[int, datetime]:
    insert: Any = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    is_over = LoginFailure.expires_at <= now
    statement = (
        insert(LoginFailure)
        .values(key=key, count=1, expires_at=now + WINDOW)
        .on_conflict_do_update(
            index_elements=[LoginFailure.key],
            set_={
                "count": case((is_over, 1), else_=LoginFailure.count + 1),
                "expires_at": case((is_over, now + WINDOW), else_=LoginFailure.expires_at),
            },
        )
        .returning(LoginFailure.count.label("attempts"), LoginFailure.expires_at)
    )
    row = session.execute(statement).one()
    return row.attempts, row.expires_at
