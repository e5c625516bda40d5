"""Objects in a private bucket of Supabase Storage. Links lead straight to it, so agents' and browsers' bytes never pass through us.

The SDK does what needs the key; what is read, and uploads in parts, go by httpx, since the SDK would hold a whole object in memory.
An error's meaning stands in the body's `statusCode`: nearly all of them come as HTTP 400.
"""

import io
import logging
import math
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, BinaryIO

import httpx
import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError
from storage3.exceptions import StorageApiError
from storage3.types import CreateSignedUploadUrlOptions, SearchV2Options
from storage3.utils import StorageException
from supabase import ClientOptions, create_client

from gridx.core.errors import ConfigurationError, GridxError, TooLarge, Unavailable
from gridx.storage.base import ObjectInfo, ObjectMissing, check_key
from gridx.storage.tus import PART_BYTES, TusClient, UploadRefused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TYPE = "application/octet-stream"
_NO_CACHE = "0"
"""Seconds. A key may be written anew, and nobody may see the old object then."""
_READ_LINK_S = 6 * 3600.0
_BLOCK = 1 << 20
_PAGE = 1000
_TIME = TypeAdapter(datetime)
_log = structlog.get_logger()

# Their lines at INFO and DEBUG name whole addresses, and a link is a permission.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class SupabaseStore:
    """An ObjectStore in one bucket. `url` must be the address that agents and browsers reach, too: it stands in their links."""

    def __init__(self, url: str, key: str, bucket: str) -> None:
        self.bucket = bucket
        # HTTP/1.1 and a client of our own: the SDK's default shares one HTTP/2 connection among threads.
        self._http = httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0))
        options = ClientOptions(httpx_client=self._http, auto_refresh_token=False, persist_session=False)
        client = create_client(url, key, options)
        self._storage = client.storage
        self._files = client.storage.from_(bucket)
        self._parts = TusClient(self._http, f"{client.storage_url}upload/resumable", {**client.options.headers, "x-upsert": "true"})

    def put_file(self, key: str, path: Path) -> None:
        check_key(key)
        status = path.lstat()
        if not S_ISREG(status.st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        with self._in_our_words(key):
            if status.st_size > PART_BYTES:
                self._parts.upload(path, {"bucketName": self.bucket, "objectName": key, "contentType": _TYPE, "cacheControl": _NO_CACHE})
            else:
                self._files.upload(key, path, {"content-type": _TYPE, "cache-control": _NO_CACHE, "upsert": "true"})
        path.unlink()

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        return self._opened(check_key(key))

    def fetch(self, key: str, target: Path) -> None:
        with self._download(check_key(key)) as blocks, target.open("xb") as file:
            try:
                for block in blocks:
                    file.write(block)
            except BaseException:
                target.unlink(missing_ok=True)
                raise

    def signed_get(self, key: str, expires_s: float, filename: str) -> str:
        """Raises ObjectMissing: Supabase signs only what is there."""
        return self._signed_get(check_key(key), expires_s, filename)

    def signed_put(self, key: str, expires_s: float, max_bytes: int) -> tuple[str, dict[str, str]]:
        """The link's lifetime is the project's own (two hours at supabase.com), and no size can be bound into it: whoever is told that
        the upload has ended compares the object's size."""
        check_key(key)
        with self._in_our_words(key):
            signed = self._files.create_signed_upload_url(key, CreateSignedUploadUrlOptions(upsert="true"))
        return signed["signed_url"], {"Content-Type": _TYPE}

    def stat(self, key: str) -> ObjectInfo | None:
        check_key(key)
        try:
            with self._in_our_words(key):
                info = self._files.info(key)
                return ObjectInfo(key, int(info["size"]), _utc(info.get("last_modified") or info["created_at"]))
        except ObjectMissing:
            return None

    def delete(self, key: str) -> None:
        check_key(key)
        with self._in_our_words(key):
            self._files.remove([key])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        # Pages by cursor, not by offset: whoever deletes while listing misses nothing.
        options: SearchV2Options = {"prefix": prefix, "limit": _PAGE, "with_delimiter": False}
        while True:
            with self._in_our_words():
                page = self._files.list_v2(options)
                found = [
                    ObjectInfo(item.name, int(item.metadata["size"]), _utc(item.updated_at))
                    for item in page.objects
                    if item.name.startswith(prefix) and _is_ours(item.name) and item.metadata is not None
                ]
            yield from found
            if not page.hasNext or not page.nextCursor:
                return
            options["cursor"] = page.nextCursor

    def make_bucket(self) -> bool:
        """Make the bucket, private, unless it is there. Returns whether it was made."""
        try:
            with self._in_our_words():
                self._storage.get_bucket(self.bucket)
        except BucketMissing:
            with self._in_our_words():
                self._storage.create_bucket(self.bucket, options={"public": False})
            return True
        return False

    def check_bucket(self, largest: int) -> None:
        """Raises ConfigurationError unless the bucket is private and takes any file of up to `largest` bytes."""
        with self._in_our_words():
            found = self._storage.get_bucket(self.bucket)
        if found.public:
            raise ConfigurationError(
                f"the bucket {self.bucket} is public: everybody could read its files. Make it private in the dashboard"
            )
        if found.file_size_limit and found.file_size_limit < largest:
            raise ConfigurationError(
                f"the bucket {self.bucket} takes files of up to {found.file_size_limit} bytes, the settings promise {largest}. "
                "Raise its limit, or lower GRIDX_MAX_UPLOAD_BYTES and GRIDX_MAX_UPDATE_BYTES"
            )
        if found.allowed_mime_types and not {_TYPE, "application/*"} & {*found.allowed_mime_types}:
            raise ConfigurationError(f"the bucket {self.bucket} does not take {_TYPE}: remove its list of allowed types")

    def close(self) -> None:
        self._http.close()

    @contextmanager
    def _opened(self, key: str) -> Generator[BinaryIO]:
        with self._download(key) as blocks:
            yield io.BufferedReader(_Blocks(blocks), _BLOCK)

    @contextmanager
    def _download(self, key: str) -> Generator[Iterator[bytes]]:
        """An object's bytes in blocks. Raises ObjectMissing before the first, Unavailable when they break off."""
        url = self._signed_get(key, _READ_LINK_S)
        request = self._http.build_request("GET", url, headers={"Accept-Encoding": "identity"})
        with self._in_our_words(key):
            answer = self._http.send(request, stream=True)
        try:
            if answer.status_code != 200:
                with self._in_our_words(key):
                    raise _api_error(answer.status_code, answer.read())
            yield self._blocks(key, answer)
        finally:
            answer.close()

    def _blocks(self, key: str, answer: httpx.Response) -> Iterator[bytes]:
        with self._in_our_words(key):
            yield from answer.iter_bytes(_BLOCK)

    def _signed_get(self, key: str, expires_s: float, filename: str = "") -> str:
        with self._in_our_words(key):
            url = self._files.create_signed_url(key, max(1, math.ceil(expires_s)), {"download": filename} if filename else {})["signedURL"]
            if url is None:
                raise StorageException("no link came back")
            return url

    @contextmanager
    def _in_our_words(self, key: str = "") -> Generator[None]:
        """Errors of the SDK and of the network as our own."""
        try:
            yield
        except StorageApiError as error:
            raise self._meaning(key, str(error.status), error.code, error.message) from error
        except UploadRefused as error:
            raise self._meaning(key, str(error.status), "TusError", str(error)) from error
        except (httpx.HTTPError, StorageException, ValidationError, KeyError, TypeError) as error:
            raise self._meaning(key, "0", type(error).__name__, "" if isinstance(error, httpx.HTTPError) else str(error)) from error

    def _meaning(self, key: str, status: str, code: str, message: str) -> GridxError:
        if status == "404" and "ucket" in message + code:
            return BucketMissing(f"the storage has no bucket {self.bucket}; the server's operator makes it with: gridx doctor")
        if status == "404" and (code in ("not_found", "NoSuchKey") or message == "Object not found"):
            return ObjectMissing(f"{key} is not in the store (any more)")
        _log.warning("storage failed", key=key, status=status, code=code, message=message[:200])
        if status == "413":
            return TooLarge(
                "the storage does not take files of this size; the server's operator can raise the bucket's and the project's limit"
            )
        if status in ("401", "403"):
            return Unavailable("the storage refuses the server's key; the server's operator checks SUPABASE_SERVICE_ROLE_KEY")
        return Unavailable(f"the storage cannot be used right now ({code}); try again in a few seconds")


class BucketMissing(Unavailable):
    """The project has no such bucket. Not ObjectMissing: nobody's work is refused for it."""

    code = "bucket_missing"


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _ErrorBody(BaseModel):
    statusCode: str | int  # noqa: N815 - their spelling
    error: str = ""
    message: str = ""


def _api_error(status: int, body: bytes) -> StorageApiError:
    try:
        found = _ErrorBody.model_validate_json(body)
    except ValidationError:
        return StorageApiError("", "UnreadableAnswer", status)
    return StorageApiError(found.message, found.error, found.statusCode)


def _is_ours(key: str) -> bool:
    """The dashboard leaves placeholders in folders that no key of ours could name."""
    try:
        check_key(key)
    except ValueError:
        return False
    return True


def _utc(value: Any) -> datetime:
    time = _TIME.validate_python(value)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
