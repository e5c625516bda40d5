"""Bodies of the sellers' routes about keys. The agents' own messages are in `gridx_protocol`."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gridx.core.text import Text


class KeyRequest(BaseModel):
    label: Annotated[Text, Field(min_length=1, max_length=200)]


class KeyCreated(BaseModel):
    id: int
    label: str
    key: str
    """Shown this once; only its hash is kept."""


class KeyView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    label: str
    created_at: datetime
    revoked_at: datetime | None


class KeyList(BaseModel):
    items: list[KeyView]
    next: int | None = None
