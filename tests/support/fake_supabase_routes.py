"""What the fake Storage server answers."""

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.support.fake_supabase_state import (
    DUPLICATE,
    NO_BUCKET,
    PART_BYTES,
    TOO_LARGE,
    ApiError,
    Bucket,
    Fault,
    State,
    StoredObject,
    TusUpload,
)


class Cut(Exception):
    """The connection ends without an answer."""


@dataclass(frozen=True)
class Request:
    state: State
    headers: Mapping[str, str]
    """By lower-case name, or any spelling."""
    query: Mapping[str, str]
    body: bytes
    fault: Fault | None


Answer = tuple[int, dict[str, str], bytes]


def _json(value: Any) -> Answer:
    return 200, {"content-type": "application/json; charset=utf-8"}, json.dumps(value).encode()


def _get_bucket(request: Request, name: str) -> Answer:
    found = request.state.bucket(name)
    at = "2024-01-01T00:00:00.000Z"
    known = {"id": name, "name": name, "owner": "", "public": found.public, "created_at": at, "updated_at": at}
    return _json({**known, "file_size_limit": found.file_size_limit, "allowed_mime_types": found.allowed_mime_types})


def _create_bucket(request: Request) -> Answer:
    wanted = json.loads(request.body)
    if wanted["id"] in request.state.buckets:
        raise ApiError(*DUPLICATE)
    request.state.buckets[wanted["id"]] = Bucket(wanted.get("public", False), wanted.get("file_size_limit"))
    return _json({"name": wanted["id"]})


def _upload(request: Request, bucket: str, key: str) -> Answer:
    return _store(request, bucket, key, is_upsert=request.headers.get("x-upsert") == "true")


def _upload_signed(request: Request, bucket: str, key: str) -> Answer:
    claims = request.state.verify(request.query.get("token", ""), f"{bucket}/{key}")
    return _store(request, bucket, key, is_upsert=claims["upsert"])


def _store(request: Request, bucket: str, key: str, *, is_upsert: bool) -> Answer:
    request.state.check_new(bucket, key, is_upsert)
    body = request.body
    content_type = request.headers.get("content-type", "application/octet-stream")
    cache_control = request.headers.get("cache-control", "no-cache")
    size = int(request.headers.get("content-length", 0))  # a raw body without one is taken at any size
    if content_type.startswith("multipart/form-data"):
        fields = _multipart(body, content_type)
        body, content_type = fields["file"]
        cache_control = f"max-age={fields['cacheControl'][0].decode()}" if "cacheControl" in fields else "no-cache"
        size = len(body)
    if size > request.state.limit(bucket):
        raise ApiError(*TOO_LARGE)
    allowed = request.state.bucket(bucket).allowed_mime_types
    if allowed and content_type not in allowed:
        raise ApiError(415, "invalid_mime_type", f"mime type {content_type} is not supported")
    request.state.put(bucket, key, body, content_type, cache_control)
    return _json({"Key": f"{bucket}/{key}", "Id": str(uuid.uuid4())})


def _multipart(body: bytes, content_type: str) -> dict[str, tuple[bytes, str]]:
    """Name -> content and type."""
    boundary = b"--" + content_type.rpartition("boundary=")[2].encode()
    fields: dict[str, tuple[bytes, str]] = {}
    for part in body.split(boundary)[1:-1]:
        head, _, data = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        kind = re.search(rb"(?i)content-type: ([^\r\n]*)", head)
        assert name is not None
        fields[name.group(1).decode()] = (data.removesuffix(b"\r\n"), kind.group(1).decode() if kind else "text/plain")
    return fields


def _info(request: Request, bucket: str, key: str) -> Answer:
    found = request.state.find(bucket, key)
    return _json({"id": str(uuid.uuid4()), "name": key, "size": len(found.data), **_times(found), "last_modified": _iso(found.updated)})


def _list(request: Request, bucket: str) -> Answer:
    wanted = json.loads(request.body)
    after = base64.b64decode(wanted["cursor"]).decode() if wanted.get("cursor") else ""
    objects = request.state.bucket(bucket).objects
    names = sorted(name for name in objects if name.startswith(wanted.get("prefix", "")) and name > after)
    page = names[: min(wanted.get("limit", 1000), 1000)]
    items = [
        {"id": str(uuid.uuid4()), "name": name, **_times(objects[name]), "metadata": {"size": len(objects[name].data)}} for name in page
    ]
    answer: dict[str, Any] = {"hasNext": len(names) > len(page), "folders": [], "objects": items}
    if answer["hasNext"]:
        answer["nextCursor"] = base64.b64encode(page[-1].encode()).decode()
    return _json(answer)


def _delete(request: Request, bucket: str) -> Answer:
    objects = request.state.bucket(bucket).objects
    return _json([{"name": name} for name in json.loads(request.body)["prefixes"] if objects.pop(name, None) is not None])


def _sign(request: Request, bucket: str, key: str) -> Answer:
    request.state.find(bucket, key)
    path = f"{bucket}/{key}"
    token = request.state.sign(url=path, exp=request.state.now() + int(json.loads(request.body)["expiresIn"]))
    return _json({"signedURL": f"/object/sign/{path}?token={token}"})


def _sign_upload(request: Request, bucket: str, key: str) -> Answer:
    is_upsert = request.headers.get("x-upsert") == "true"
    request.state.check_new(bucket, key, is_upsert)
    path = f"{bucket}/{key}"
    token = request.state.sign(url=path, upsert=is_upsert, exp=request.state.now() + request.state.link_s)
    return _json({"url": f"/object/upload/sign/{path}?token={token}", "token": token})


def _download_signed(request: Request, bucket: str, key: str) -> Answer:
    request.state.verify(request.query.get("token", ""), f"{bucket}/{key}")
    found = request.state.find(bucket, key)
    headers = {"content-type": found.content_type, "cache-control": found.cache_control}
    if "download" in request.query:
        headers["content-disposition"] = f"attachment; filename={request.query['download']};"
    return 200, headers, found.data


def _download_public(request: Request, bucket: str, key: str) -> Answer:
    if not request.state.bucket(bucket).public:
        raise ApiError(*NO_BUCKET)
    return 200, {}, request.state.find(bucket, key).data


def _tus_create(request: Request) -> Answer:
    pairs = (item.split(" ") for item in request.headers.get("upload-metadata", "").split(","))
    metadata = {name: base64.b64decode(value).decode() for name, value in pairs}
    upload = TusUpload(metadata["bucketName"], metadata["objectName"], int(request.headers["upload-length"]), metadata)
    _tus_allowed(request, upload)
    if upload.size > request.state.limit(upload.bucket):
        raise ApiError(413, "EntityTooLarge", "Maximum size exceeded")
    upload_id = base64.urlsafe_b64encode(f"{upload.bucket}/{upload.key}/{uuid.uuid4()}".encode()).decode().rstrip("=")
    request.state.uploads[upload_id] = upload
    # As behind a proxy: a scheme and host that lead nowhere.
    return 201, {"location": f"https://storage.invalid/upload/resumable/{upload_id}", "tus-resumable": "1.0.0"}, b""


def _tus_patch(request: Request, upload_id: str) -> Answer:
    upload, body = _tus_upload(request, upload_id), request.body
    _tus_allowed(request, upload)
    if request.headers.get("content-type") != "application/offset+octet-stream":
        raise ApiError(400, "TusError", "Content-Type header required")
    if int(request.headers["upload-offset"]) != len(upload.data):
        raise ApiError(409, "TusError", "Upload-Offset header invalid")
    if len(body) != PART_BYTES and len(upload.data) + len(body) != upload.size:
        raise ApiError(400, "TusError", f"a part of {len(body)} bytes: only the last may differ from {PART_BYTES}")
    if request.fault is not None and request.fault.kind == "drop":
        upload.data += body[: request.fault.keep]
        raise Cut
    upload.data += body
    if len(upload.data) == upload.size:
        cache = upload.metadata.get("cacheControl", "")
        request.state.put(upload.bucket, upload.key, bytes(upload.data), upload.metadata["contentType"], f"max-age={cache}")
    return 204, {"upload-offset": str(len(upload.data)), "tus-resumable": "1.0.0"}, b""


def _tus_head(request: Request, upload_id: str) -> Answer:
    upload = _tus_upload(request, upload_id)
    return 200, {"upload-offset": str(len(upload.data)), "upload-length": str(upload.size), "tus-resumable": "1.0.0"}, b""


def _tus_upload(request: Request, upload_id: str) -> TusUpload:
    if upload_id not in request.state.uploads:
        raise ApiError(404, "TusError", "The file for this url was not found")
    return request.state.uploads[upload_id]


def _tus_allowed(request: Request, upload: TusUpload) -> None:
    if request.headers.get("tus-resumable") != "1.0.0":
        raise ApiError(412, "TusError", "Tus-Resumable Required")
    request.state.check_new(upload.bucket, upload.key, request.headers.get("x-upsert") == "true")


def _times(found: StoredObject) -> dict[str, str]:
    return {"created_at": _iso(found.created), "updated_at": _iso(found.updated)}


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_OBJECT = r"([^/]+)/(.+)"
ROUTES: list[tuple[str, bool, Callable[..., Answer]]] = [
    (r"GET /bucket/([^/]+)", True, _get_bucket),
    (r"POST /bucket/?", True, _create_bucket),
    (rf"POST /object/upload/sign/{_OBJECT}", True, _sign_upload),
    (rf"PUT /object/upload/sign/{_OBJECT}", False, _upload_signed),
    (rf"POST /object/sign/{_OBJECT}", True, _sign),
    (rf"GET /object/sign/{_OBJECT}", False, _download_signed),
    (rf"GET /object/public/{_OBJECT}", False, _download_public),
    (rf"GET /object/info/{_OBJECT}", True, _info),
    (r"POST /object/list-v2/([^/]+)", True, _list),
    (r"DELETE /object/([^/]+)", True, _delete),
    (rf"POST /object/{_OBJECT}", True, _upload),
    (r"POST /upload/resumable/?", True, _tus_create),
    (r"PATCH /upload/resumable/([^/]+)", True, _tus_patch),
    (r"HEAD /upload/resumable/([^/]+)", True, _tus_head),
]
