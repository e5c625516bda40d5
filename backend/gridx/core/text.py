"""Types of request fields that hold for every domain: text that every database can store, ids that every client can hold."""

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import AfterValidator

MAX_ID = 2**53
"""The largest whole number that JavaScript holds exactly."""


def check_text(value: str) -> str:
    """The text itself. Raises ValueError for a NUL character or half a surrogate pair, which PostgreSQL cannot store."""
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode") from None
    return value


Text = Annotated[str, AfterValidator(check_text)]
"""Add a length where it is used: `Annotated[Text, StringConstraints(max_length=200)]`."""

Id = Annotated[int, Ge(1), Le(MAX_ID)]
