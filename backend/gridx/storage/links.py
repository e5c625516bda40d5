"""Links that carry their own permission: HMAC-SHA256 over every part, with a key used for nothing else."""

import hashlib
import hmac
import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import quote, urlencode

from gridx.core.errors import GridxError

Method = Literal["GET", "PUT"]


class LinkRefused(GridxError):
    """The link was altered, is for something else, or has run out."""

    status = 403
    code = "link_refused"


@dataclass(frozen=True)
class Link:
    """What a link allows. `max_bytes` counts for PUT only, `filename` for GET only."""

    method: Method
    key: str
    expires: int
    """Seconds since 1970, UTC."""
    max_bytes: int = 0
    filename: str = ""


class LinkSigner:
    def __init__(self, secret: str) -> None:
        self._key = hmac.new(secret.encode(), b"gridx:links", hashlib.sha256).digest()

    def url(self, base: str, link: Link) -> str:
        """The link's address below `base`."""
        query = {
            "expires": link.expires,
            "method": link.method,
            "max": link.max_bytes,
            "name": link.filename,
            "sig": self._signature(link),
        }
        return f"{base}/{quote(link.key)}?{urlencode(query)}"

    def check(self, link: Link, signature: str, now: datetime) -> None:
        """Raises LinkRefused unless `link` was signed here and has not run out."""
        if not hmac.compare_digest(self._signature(link).encode(), signature.encode("utf-8", "replace")):
            raise LinkRefused("this link is not valid for what was asked; ask for a fresh one")
        if link.expires <= now.timestamp():
            raise LinkRefused("this link has expired; ask for a fresh one")

    def _signature(self, link: Link) -> str:
        # JSON keeps the parts apart: no name can be made to look like another part.
        parts = json.dumps([link.method, link.key, link.expires, link.max_bytes, link.filename])
        return hmac.new(self._key, parts.encode(), hashlib.sha256).hexdigest()


def expiry(now: datetime, seconds: float) -> int:
    return math.ceil(now.timestamp() + seconds)
