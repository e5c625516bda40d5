"""Bodies of the /auth routes."""

from datetime import datetime
from typing import Annotated, Literal

import email_validator
from pydantic import AfterValidator, BaseModel, StringConstraints

from gridx.accounts.passwords import GivenPassword, NewPassword
from gridx.core.text import Text

# No mail is sent: addresses of a laboratory's own network (somebody@cluster.local) are as good as any.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

Role = Literal["buyer", "seller", "both"]


def normalise_email(value: str) -> str:
    """Lower case, Unicode in one form. Raises ValueError when it is no address."""
    try:
        checked = email_validator.validate_email(value.strip(), check_deliverability=False, globally_deliverable=False)
    except email_validator.EmailNotValidError:
        raise ValueError("is not an e-mail address") from None
    return checked.normalized.lower()


Email = Annotated[Text, StringConstraints(max_length=320), AfterValidator(normalise_email)]


class RegisterIn(BaseModel):
    email: Email
    password: NewPassword
    role: Role
    invite: Annotated[Text, StringConstraints(max_length=200)] | None = None
    """The code of an invitation, where the server asks for one."""


class LoginIn(BaseModel):
    email: Email
    password: GivenPassword


class PasswordIn(BaseModel):
    old: GivenPassword
    new: NewPassword


class UserOut(BaseModel):
    id: int
    email: str
    role: Role
    credits: int


class TokenOut(BaseModel):
    access_token: str
    token_type: Literal["bearer"] = "bearer"  # noqa: S105 - the name of the scheme
    user: UserOut


class WalletOut(BaseModel):
    user_id: int
    credits: int
    held: int
    """Credits in escrow for jobs that have not ended."""
    role: Role


class MovementOut(BaseModel):
    id: int
    amount: int
    """Credits; below 0 when they left the wallet."""
    other: str
    """The other side: `mint`, `escrow:{job id}` or `wallet:{user id}`."""
    reference: str
    reason: str
    created_at: datetime


class MovementList(BaseModel):
    items: list[MovementOut]
    next: int | None
    """Pass as `before` to read on; null at the end."""
