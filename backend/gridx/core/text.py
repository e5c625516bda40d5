"""Types of request fields that hold for every domain: text that every database can store, ids that every client can hold."""

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import StringConstraints

NUL_PATTERN = r"^[^\x00]*$"
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


Text = Annotated[str, StringConstraints(pattern=NUL_PATTERN)]
"""As `check_text`: pydantic itself refuses half a surrogate pair. A pattern and no validator, so that what is added where it is used,
`Annotated[Text, StringConstraints(strip_whitespace=True, max_length=200)]`, still counts."""

Id = Annotated[int, Ge(1), Le(MAX_ID)]
