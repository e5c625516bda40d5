"""The multipart form of POST /jobs/upload: its fields, and what each must hold."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gridx.core.errors import Invalid
from gridx.core.http import describe
from gridx.datasets.receive import Form, ReceivedFile
from gridx.jobs.options import JobOptions
from gridx.jobs.scripts import MAX_REQUIREMENTS_BYTES, MAX_SCRIPT_BYTES

_JSON_FIELDS = ("hyperparameters", "needs", "strategy_options", "partitioner_options", "early_stopping")
_PLAIN_FIELDS = (
    "title",
    "mode",
    "chunks",
    "rounds",
    "partitioner",
    "strategy",
    "time_limit_s",
    "min_updates",
    "seed",
    "keep_updates",
    "require_idle",
    "fraction",
    "round_deadline_s",
    "backups",
    "held_out",
    "evaluations",
    "initial_job_id",
    "initial_round",
)

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
                        "mode": {"type": "string", "default": "federated", "description": "federated or ddp"},
                        "chunks": {"type": "integer", "default": 5},
                        "rounds": {"type": "integer", "default": 1},
                        "partitioner": {"type": "string", "default": "iid"},
                        "partitioner_options": {"type": "string", "description": "a JSON object, the partitioner's own options"},
                        "strategy": {"type": "string", "default": "fedavg"},
                        "strategy_options": {"type": "string", "description": "a JSON object, the strategy's own options"},
                        "time_limit_s": {"type": "integer", "default": 3600},
                        "min_updates": {"type": "integer"},
                        "seed": {"type": "integer"},
                        "keep_updates": {"type": "boolean", "default": False},
                        "require_idle": {"type": "boolean", "default": False},
                        "fraction": {"type": "number", "default": 1.0, "description": "share of the chunks that train in a round"},
                        "round_deadline_s": {"type": "integer"},
                        "backups": {"type": "boolean", "default": True},
                        "held_out": {"type": "number", "default": 0.0, "description": "share of the rows for evaluate()"},
                        "evaluations": {"type": "integer", "default": 2},
                        "early_stopping": {"type": "string", "description": "a JSON object: patience, min_delta, monitor"},
                        "initial_job_id": {"type": "integer"},
                        "initial_round": {"type": "integer"},
                        "file_model": {"type": "string", "format": "binary", "description": "a model.pth to start from"},
                    },
                }
            }
        },
    }
}


FILE_LIMITS = {"file_code": MAX_SCRIPT_BYTES, "file_req": MAX_REQUIREMENTS_BYTES}
"""Bytes of the small file parts; `file_data` has the settings' own limit."""


@dataclass(frozen=True)
class Upload:
    """The parts of a form, checked one by one. Either `data` or `dataset_id` is given."""

    options: JobOptions
    script: bytes
    requirements: bytes
    data: ReceivedFile | None
    dataset_id: int | None
    model: ReceivedFile | None

    def data_identity(self) -> str:
        """What tells one data part from another: the dataset's id, or the file's SHA-256."""
        data = self.data.sha256 if self.data is not None else f"dataset {self.dataset_id}"
        return data if self.model is None else f"{data} model {self.model.sha256}"


def read_upload(form: Form) -> Upload:
    """Parse a received form. Raises Invalid naming every field that is wrong."""
    problems: list[str] = []
    script, requirements, data = form.files.get("file_code"), form.files.get("file_req"), form.files.get("file_data")
    if script is None:
        problems.append("file_code: the training script is missing")
    if data is not None and not data.bytes and not data.filename:
        data = None  # what a browser sends for a file field that was left empty
    dataset_id = _dataset_id(form.fields.get("dataset_id"), problems)
    if data is None and not form.fields.get("dataset_id"):
        problems.append("file_data: the CSV is missing; send it, or dataset_id")
    if data is not None and dataset_id is not None:
        problems.append("file_data, dataset_id: only one of the two may be given")
    model = form.files.get("file_model")
    if model is not None and not model.bytes and not model.filename:
        model = None
    options = _options(form.fields, problems)
    if model is not None and options is not None and options.initial_job_id is not None:
        problems.append("file_model, initial_job_id: only one of the two may be given")
    if problems or options is None or script is None:
        raise Invalid("; ".join(problems))
    return Upload(options, script.path.read_bytes(), requirements.path.read_bytes() if requirements else b"", data, dataset_id, model)


def _options(fields: Mapping[str, str], problems: list[str]) -> JobOptions | None:
    known = {*_PLAIN_FIELDS, *_JSON_FIELDS, "arguments", "dataset_id"}
    problems.extend(f"{name[:60]}: there is no such field" for name in fields if name not in known)
    values: dict[str, Any] = {name: fields[name] for name in _PLAIN_FIELDS if fields.get(name)}
    if fields.get("arguments", "").strip():
        values["arguments"] = _arguments(fields["arguments"])
    for name in _JSON_FIELDS:
        if fields.get(name, "").strip():
            try:
                values[name] = _mapping(fields[name], name)
            except Invalid as error:
                problems.append(error.detail)
    try:
        return JobOptions.model_validate(values)
    except ValidationError as error:
        problems.append(describe(error.errors(include_input=False)))
        return None


def _arguments(value: str) -> Any:
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _dataset_id(value: str | None, problems: list[str]) -> int | None:
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 16 or not 1 <= int(value) <= 2**53:
        problems.append("dataset_id: expected the number of a dataset")
        return None
    return int(value)


def _mapping(value: str, field: str) -> dict[str, Any]:
    """A field that holds a JSON object. Raises Invalid naming it."""
    try:
        parsed = json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{field}: not JSON ({error})") from None
    if not isinstance(parsed, dict):
        raise Invalid(f'{field}: expected a JSON object such as {{"epochs": 5}}')
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
