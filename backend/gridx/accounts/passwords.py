"""Hashing passwords: bcrypt over SHA-256, so that all of a long password counts. A hash takes about a fifth of a second: never with a
session open, never on the event loop."""

from functools import cache
from typing import Annotated

from passlib.hash import bcrypt_sha256  # pyright: ignore[reportAttributeAccessIssue] - made at run time
from pydantic import AfterValidator, SecretStr

from gridx.core.text import check_text

MIN_CHARS = 8
MAX_CHARS = 1024


def _checked(least: int) -> AfterValidator:
    def check(value: SecretStr) -> SecretStr:
        password = check_text(value.get_secret_value())
        if not least <= len(password) <= MAX_CHARS:
            raise ValueError(f"must have {least} to {MAX_CHARS} characters")
        return value

    return AfterValidator(check)


NewPassword = Annotated[SecretStr, _checked(MIN_CHARS)]
GivenPassword = Annotated[SecretStr, _checked(1)]
"""One that is only compared: how short it is says nothing."""


def hash_password(password: SecretStr) -> str:
    return bcrypt_sha256.hash(password.get_secret_value())


def verify_password(password: SecretStr, password_hash: str | None) -> bool:
    """Whether the password is the one hashed. Without a hash it takes as long and is False, so that unknown users cannot be told apart."""
    is_right = bcrypt_sha256.verify(password.get_secret_value(), password_hash or _dummy_hash())
    return is_right and password_hash is not None


@cache
def _dummy_hash() -> str:
    return bcrypt_sha256.hash("nobody has this password")
