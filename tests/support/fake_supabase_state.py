"""What the fake Storage server knows: buckets, objects, uploads under way, and what is to go wrong next."""

import re
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from jose import JWTError, jwt

PART_BYTES = 6 * 1024 * 1024
_SECRET = "the fake's own secret"
_KEY_CHARS = re.compile(r"[\w/!\-.*'() &$@=;:+,?]+", re.ASCII)


class ApiError(Exception):
    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status, self.error, self.message = status, error, message


NO_BUCKET = (404, "Bucket not found", "Bucket not found")
NO_OBJECT = (404, "not_found", "Object not found")
DUPLICATE = (409, "Duplicate", "The resource already exists")
TOO_LARGE = (413, "Payload too large", "The object exceeded the maximum allowed size")


@dataclass
class StoredObject:
    data: bytes
    content_type: str
    cache_control: str
    created: datetime
    updated: datetime


@dataclass
class Bucket:
    public: bool = False
    file_size_limit: int | None = None
    allowed_mime_types: list[str] | None = None
    objects: dict[str, StoredObject] = field(default_factory=dict[str, StoredObject])


@dataclass
class TusUpload:
    bucket: str
    key: str
    size: int
    metadata: dict[str, str]
    data: bytearray = field(default_factory=bytearray)


@dataclass
class Fault:
    """What happens to the next request whose line matches. `refuse`: answered with `status`; `drop`: cut off before it counts, after
    `keep` bytes of a TUS part were stored; `forget`: done, but the answer never arrives."""

    pattern: str
    kind: Literal["refuse", "drop", "forget"]
    status: int = 503
    keep: int = 0


class State:
    """`requests` holds every request line, without query strings."""

    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {"gridx-files": Bucket()}
        self.uploads: dict[str, TusUpload] = {}
        self.requests: list[str] = []
        self.faults: list[Fault] = []
        self.size_limit = 50 * 1024**3
        self.link_s = 7200
        self.late_s = 0.0
        """How much the server's clock is ahead: makes links expire."""
        self.lock = threading.Lock()

    def fail(self, pattern: str, kind: Literal["refuse", "drop", "forget"] = "refuse", *, status: int = 503, keep: int = 0) -> None:
        self.faults.append(Fault(pattern, kind, status, keep))

    def take_fault(self, line: str) -> Fault | None:
        for fault in self.faults:
            if re.search(fault.pattern, line):
                self.faults.remove(fault)
                return fault
        return None

    def bucket(self, name: str) -> Bucket:
        if name not in self.buckets:
            raise ApiError(*NO_BUCKET)
        return self.buckets[name]

    def find(self, bucket: str, key: str) -> StoredObject:
        self.check_key(key)
        found = self.bucket(bucket).objects.get(key)
        if found is None:
            raise ApiError(*NO_OBJECT)
        return found

    def put(self, bucket: str, key: str, data: bytes, content_type: str, cache_control: str) -> None:
        objects, now = self.bucket(bucket).objects, datetime.now(UTC)
        created = objects[key].created if key in objects else now
        objects[key] = StoredObject(data, content_type, cache_control, created, now)

    def limit(self, bucket: str) -> int:
        return min(self.size_limit, self.bucket(bucket).file_size_limit or self.size_limit)

    def check_key(self, key: str) -> None:
        if not _KEY_CHARS.fullmatch(key):
            raise ApiError(400, "InvalidKey", f"Invalid key: {key}")

    def check_new(self, bucket: str, key: str, is_upsert: bool) -> None:
        self.check_key(key)
        if key in self.bucket(bucket).objects and not is_upsert:
            raise ApiError(*DUPLICATE)

    def sign(self, **claims: Any) -> str:
        return jwt.encode(claims, _SECRET, algorithm="HS256")

    def verify(self, token: str, path: str) -> dict[str, Any]:
        try:
            claims = jwt.decode(token, _SECRET, algorithms=["HS256"], options={"verify_exp": False})
        except JWTError as error:
            raise ApiError(400, "InvalidJWT", str(error)) from None
        if claims["exp"] <= self.now():
            raise ApiError(400, "InvalidJWT", '"exp" claim timestamp check failed')
        if claims["url"] != path:
            raise ApiError(400, "InvalidSignature", "Invalid signature")
        return claims

    def now(self) -> float:
        return time.time() + self.late_s
