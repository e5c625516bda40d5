"""The multipart form of POST /jobs/upload: its fields, and what each must hold."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

from pydantic import ValidationError
from starlette.datastructures import UploadFile

from gridx.accounts.deps import Actor
from gridx.core.db import Database
from gridx.core.errors import Invalid, TooLarge
from gridx.core.settings import Settings
from gridx.datasets import service as datasets
from gridx.jobs.schemas import JobOptions
from gridx.jobs.scripts import MAX_REQUIREMENTS_BYTES, MAX_SCRIPT_BYTES
from gridx.jobs.service import as_mapping
from gridx.storage.base import ObjectStore

_JSON_FIELDS = ("hyperparameters", "needs")
_PLAIN_FIELDS = ("title", "chunks", "rounds", "partitioner", "strategy", "time_limit_s", "min_updates", "seed", "keep_updates", "require_idle")
_COPY_BYTES = 1024 * 1024

UPLOAD_SCHEMA: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["title", "file_code"],
                    "properties": {
                        "title": {"type": "string"},
                        "file_code": {"type": "string", "format": "binary", "description": "the training script"},
                        "file_req": {"type": "string", "format": "binary", "description": "requirements.txt"},
                        "file_data": {"type": "string", "format": "binary", "description": "the CSV; or give dataset_id"},
                        "dataset_id": {"type": "integer"},
                        "arguments": {"type": "string", "description": "command line of the script"},
                        "hyperparameters": {"type": "string", "description": "a JSON object"},
                        "needs": {"type": "string", "description": "a JSON object: ram_bytes, gpu, vram_bytes"},
                        "chunks": {"type": "integer", "default": 5},
                        "rounds": {"type": "integer", "default": 1},
                        "partitioner": {"type": "string", "default": "iid"},
                        "strategy": {"type": "string", "default": "fedavg"},
                        "time_limit_s": {"type": "integer", "default": 3600},
                        "min_updates": {"type": "integer"},
                        "seed": {"type": "integer"},
                        "keep_updates": {"type": "boolean", "default": False},
                        "require_idle": {"type": "boolean", "default": False},
                    },
                }
            }
        },
    }
}


@dataclass(frozen=True)
class Upload:
    """The parts of a form, checked one by one. Either `data` or `dataset_id` is given."""

    options: JobOptions
    script: bytes
    requirements: bytes
    data: UploadFile | None
    dataset_id: int | None

    def data_identity(self) -> str:
        """What tells one data part from another: the dataset's id, or the file's SHA-256."""
        if self.data is None:
            return f"dataset {self.dataset_id}"
        return _sha256(self.data.file)


def read_upload(form: Mapping[str, UploadFile | str]) -> Upload:
    """Parse the form. Raises Invalid naming every field that is wrong, or TooLarge."""
    problems: list[str] = []
    script = _file(form, "file_code", MAX_SCRIPT_BYTES)
    requirements = _file(form, "file_req", MAX_REQUIREMENTS_BYTES)
    if script is None:
        problems.append("file_code: the training script is missing")
    data = form.get("file_data")
    data_file = data if isinstance(data, UploadFile) and (data.filename or data.size) else None
    dataset_id = _dataset_id(form, problems)
    if data_file is None and dataset_id is None and not any(problem.startswith("dataset_id") for problem in problems):
        problems.append("file_data: the CSV is missing; send it, or dataset_id")
    if data_file is not None and dataset_id is not None:
        problems.append("file_data, dataset_id: only one of the two may be given")
    options = _options(form, problems)
    if problems or options is None:
        raise Invalid("; ".join(problems))
    return Upload(options, script or b"", requirements or b"", data_file, dataset_id)


def store_upload(upload: Upload, actor: Actor, database: Database, store: ObjectStore, settings: Settings, now: datetime) -> int:
    """Keep the form's CSV as a dataset. Returns its id. Raises DatasetRefused naming the line."""
    data = upload.data
    assert data is not None
    folder = settings.home / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, prefix="upload-", delete=False) as target:
        path = Path(target.name)
        try:
            sha256 = _copy(data.file, target, settings.max_upload_bytes)
            target.close()
            dataset = datasets.create_from_file(
                database, store, actor, path, name=data.filename or f"{upload.options.title}.csv", sha256=sha256, now=now
            )
        finally:
            path.unlink(missing_ok=True)
    return dataset.id


def _options(form: Mapping[str, UploadFile | str], problems: list[str]) -> JobOptions | None:
    values: dict[str, Any] = {}
    for name in _PLAIN_FIELDS:
        value = form.get(name)
        if isinstance(value, str) and value != "":
            values[name] = value
    arguments = form.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        values["arguments"] = _arguments(arguments)
    for name in _JSON_FIELDS:
        value = form.get(name)
        if isinstance(value, str) and value.strip():
            try:
                values[name] = as_mapping(value, name)
            except Invalid as error:
                problems.append(error.detail)
    try:
        return JobOptions.model_validate(values)
    except ValidationError as error:
        problems.extend(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors(include_input=False))
        return None


def _arguments(value: str) -> Any:
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _dataset_id(form: Mapping[str, UploadFile | str], problems: list[str]) -> int | None:
    value = form.get("dataset_id")
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or not 1 <= int(value[:17]) <= 2**53:
        problems.append("dataset_id: expected the number of a dataset")
        return None
    return int(value)


def _file(form: Mapping[str, UploadFile | str], name: str, limit: int) -> bytes | None:
    part = form.get(name)
    if part is None:
        return None
    data = part.encode() if isinstance(part, str) else part.file.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"{name}: at most {limit} bytes are taken")
    return data


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _copy(source: BinaryIO, target: Any, limit: int) -> str:
    digest, total = hashlib.sha256(), 0
    source.seek(0)
    while block := source.read(_COPY_BYTES):
        total += len(block)
        if total > limit:
            raise TooLarge(f"file_data: at most {limit} bytes are taken")
        digest.update(block)
        target.write(block)
    return digest.hexdigest()
