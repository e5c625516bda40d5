"""Proves that the store does what it promises: a bucket that nobody else reads, and a round trip that leaves nothing behind."""

import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from gridx.core.errors import GridxError
from gridx.core.settings import Settings
from gridx.storage.base import ObjectStore
from gridx.storage.local import LocalStore
from gridx.storage.select import make_store
from gridx.storage.tus import PART_BYTES

_PREFIX = "doctor/"
_LEFTOVER = timedelta(hours=1)

Check = tuple[str, str | None]
"""What was looked at, and what is wrong with it."""


def check_storage(settings: Settings) -> Iterator[Check]:
    """Make the bucket when it is missing, then check it and the store by doing what the server does."""
    try:
        store = make_store(settings)
    except (GridxError, OSError) as error:
        yield "storage is configured", _words(error)
        return
    if not isinstance(store, LocalStore):
        try:
            yield from _check_bucket(store, settings)
        except (GridxError, OSError) as error:
            yield f"bucket {settings.supabase_bucket} is there and private", _words(error)
            return
    yield from _round_trips(store)


def _check_bucket(store: ObjectStore, settings: Settings) -> Iterator[Check]:
    from gridx.storage.supabase import SupabaseStore  # heavy, and loaded already when there is such a store

    if not isinstance(store, SupabaseStore):
        return
    if store.make_bucket():
        yield f"bucket {store.bucket} was missing and is made", None
    store.check_bucket(max(settings.max_upload_bytes, settings.max_update_bytes))
    yield f"bucket {store.bucket} is there and private", None


def _round_trips(store: ObjectStore) -> Iterator[Check]:
    folder = f"{_PREFIX}{secrets.token_hex(8)}/"
    with TemporaryDirectory(prefix="gridx-doctor-") as scratch:
        steps: list[tuple[str, Callable[[], None]]] = [
            ("storage keeps a file: written, seen, listed, read", lambda: _keep(store, f"{folder}small", b"gridx", Path(scratch)))
        ]
        if not isinstance(store, LocalStore):
            steps += [
                ("storage keeps a large file, sent in parts", lambda: _keep(store, f"{folder}large", bytes(PART_BYTES + 1), Path(scratch))),
                ("storage takes uploads by link, and gives downloads", lambda: _by_links(store, f"{folder}link")),
            ]
        steps.append(("storage forgets what is deleted", lambda: _clean_up(store, folder)))
        for name, step in steps:
            try:
                step()
                yield name, None
            except (GridxError, OSError, httpx.HTTPError, AssertionError) as error:
                yield name, _words(error)


def _keep(store: ObjectStore, key: str, data: bytes, scratch: Path) -> None:
    path = scratch / "file"
    path.write_bytes(data)
    store.put_file(key, path)
    info = store.stat(key)
    _demand(info is not None and info.size == len(data), "what was written is not seen, or not whole")
    _demand([found.key for found in store.list(key)] == [key], "what was written is not listed")
    with store.open(key) as stream:
        _demand(stream.read() == data, "what is read is not what was written")


def _by_links(store: ObjectStore, key: str) -> None:
    url, headers = store.signed_put(key, 60, 100)
    answer = httpx.put(url, content=b"by link", headers=headers)
    _demand(answer.is_success, f"the upload by link was answered with {answer.status_code}")
    answer = httpx.get(store.signed_get(key, 60, "file"))
    _demand(answer.content == b"by link", f"the download by link was answered with {answer.status_code}")
    bare = url.partition("?")[0].replace("/object/upload/sign/", "/object/public/")
    _demand(not httpx.get(bare).is_success, "the file can be read without a link")


def _clean_up(store: ObjectStore, folder: str) -> None:
    old = datetime.now(UTC) - _LEFTOVER
    for info in list(store.list(_PREFIX)):
        if info.key.startswith(folder) or info.modified < old:  # the latter: of a run that was killed
            store.delete(info.key)
    _demand(list(store.list(folder)) == [], "deleted files are still there")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _words(error: Exception) -> str:
    return error.detail if isinstance(error, GridxError) else str(error) or type(error).__name__
