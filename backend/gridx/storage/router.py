"""Downloads and uploads of a LocalStore by signed link. No session, no account: the link is the permission.

What comes from users leaves as an attachment of no particular type, in a sandbox, so that a browser never runs it under our origin.
"""

from typing import Annotated, Final

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse

from gridx.core.errors import NotFound
from gridx.core.http import ERRORS
from gridx.core.streams import stream_to_file
from gridx.storage.base import check_key
from gridx.storage.deps import StoreDep
from gridx.storage.links import Link, LinkRefused, Method
from gridx.storage.local import LocalStore

router = APIRouter(prefix="/files", tags=["files"], responses=ERRORS)

FILE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
_MAX_NUMBER = 2**53

_Number = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]


async def get_local_store(store: StoreDep) -> LocalStore:
    if not isinstance(store, LocalStore):
        raise NotFound("files of this server are served elsewhere")
    return store


LocalStoreDep = Annotated[LocalStore, Depends(get_local_store)]


@router.head("/{key:path}", include_in_schema=False)
@router.get("/{key:path}", response_class=FileResponse, operation_id="download_file")
def download(key: str, store: LocalStoreDep, expires: _Number, method: str, sig: str, name: str = "", max: _Number = 0) -> FileResponse:
    """One object's bytes; `Range` is understood."""
    link = _checked(store, "GET", Link("GET", key, expires, max, name), method, sig)
    info = store.stat(link.key)
    if info is None:
        raise NotFound("this file is not kept any more")
    return FileResponse(
        store.path(link.key),
        media_type="application/octet-stream",
        filename=name or key.rpartition("/")[2],
        content_disposition_type="attachment",
        headers=FILE_HEADERS,
    )


@router.put("/{key:path}", status_code=204, operation_id="upload_file")
async def upload(
    key: str, request: Request, store: LocalStoreDep, expires: _Number, method: str, sig: str, max: _Number = 0, name: str = ""
) -> Response:
    """Store the body, whole or not at all. 413 when it is larger than the link allows."""
    link = _checked(store, "PUT", Link("PUT", key, expires, max, name), method, sig)
    temporary = store.temporary()
    try:
        await stream_to_file(request, temporary, link.max_bytes)
        await to_thread.run_sync(store.put_file, link.key, temporary)
    finally:
        temporary.unlink(missing_ok=True)
    return Response(status_code=204)


def _checked(store: LocalStore, wanted: Method, link: Link, method: str, signature: str) -> Link:
    if method != wanted:
        raise LinkRefused(f"this link is for {'uploads' if wanted == 'GET' else 'downloads'}, not for {wanted}")
    store.signer.check(link, signature, store.clock.now())
    try:
        check_key(link.key)
    except ValueError:
        raise LinkRefused("this link names no file") from None
    return link
