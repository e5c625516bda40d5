"""Bodies of the buyers' and everybody's routes."""

import json
import math
import shlex
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gridx.core.text import Text, check_text
from gridx_protocol import Needs

MAX_CHUNKS = 1000
MAX_ROUNDS = 1000
MAX_TIME_LIMIT_S = 7 * 24 * 3600
MAX_HYPERPARAMETERS_BYTES = 64 * 1024
"""They reach the script in one environment variable, and Linux starts no program with one of 128 KiB."""


def _bounded_json(value: dict[str, Any]) -> dict[str, Any]:
    """JSON that a script can be given: no NaN, no NUL, no half surrogate pair, not deep, not large."""
    _walk(value, 0)
    size = len(json.dumps(value))
    if size > MAX_HYPERPARAMETERS_BYTES:
        raise ValueError(f"{size} bytes as JSON; at most {MAX_HYPERPARAMETERS_BYTES} are taken. Put tables into the script or the data")
    return value


def _walk(value: Any, depth: int) -> None:
    if depth > 8:
        raise ValueError("nested more than 8 levels deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and infinity are no JSON")
    if isinstance(value, str):
        check_text(value)
        if len(value) > 10_000:
            raise ValueError("text longer than 10,000 characters")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        raise ValueError("integers beyond 2**53 lose digits in JSON")
    if isinstance(value, dict):
        if len(value) > 200:
            raise ValueError("more than 200 entries in one object")
        for key, item in value.items():
            _walk(key, depth + 1)
            _walk(item, depth + 1)
    if isinstance(value, list):
        if len(value) > 1000:
            raise ValueError("more than 1,000 entries in one list")
        for item in value:
            _walk(item, depth + 1)


def _command_line(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"not a command line: {error}") from None


Hyperparameters = Annotated[dict[str, Any], AfterValidator(_bounded_json)]


class JobOptions(BaseModel):
    """What may be chosen for a job, with the defaults of the form. An unknown field is refused: it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[Text, Field(min_length=1, max_length=200)]
    arguments: Annotated[list[Annotated[Text, Field(max_length=1000)]], Field(max_length=100), BeforeValidator(_command_line)] = []
    """The script's command line, as a list or as one string in shell quoting."""
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 5
    rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 1
    partitioner: Annotated[Text, Field(max_length=32)] = "iid"
    partitioner_options: Hyperparameters = {}
    """The partitioner's own, see docs/algorithms.md."""
    strategy: Annotated[Text, Field(max_length=32)] = "fedavg"
    strategy_options: Hyperparameters = {}
    """The strategy's own, see docs/algorithms.md."""
    hyperparameters: Hyperparameters = {}
    time_limit_s: Annotated[int, Field(ge=10, le=MAX_TIME_LIMIT_S)] = 3600
    needs: Needs = Needs()
    min_updates: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] | None = None
    """Updates that a round needs; all chunks by default. It still waits for every chunk whose attempts are not spent."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Deals rows and starts the scripts' random numbers; drawn when not given."""
    keep_updates: bool = False
    require_idle: bool = False
    """Refuse instead of waiting when fewer agents are idle than there are chunks."""


class JobRequest(JobOptions):
    """POST /jobs: a script over a dataset that was uploaded before."""

    dataset_id: Annotated[int, Field(ge=1, le=2**53)] | None = None
    dataset_name: Annotated[Text, Field(min_length=1, max_length=255)] | None = None
    """The newest of the caller's datasets with this name; instead of `dataset_id`."""
    script: Annotated[Text, Field(min_length=1, max_length=1024 * 1024)]
    requirements: Annotated[Text, Field(max_length=64 * 1024)] = ""
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS, validation_alias=AliasChoices("chunks", "shard_count"))] = 5

    @model_validator(mode="after")
    def _names_one_dataset(self) -> Self:
        if (self.dataset_id is None) == (self.dataset_name is None):
            raise ValueError("give either dataset_id or dataset_name")
        return self


class JobCreated(BaseModel):
    job_id: int
    status: str
    price: int
    message: str
    idle_agents: int
    warnings: list[str]


class AttemptView(BaseModel):
    attempt: int
    agent_id: str
    status: str
    phase: str | None
    progress: float | None
    epoch: int | None
    loss: float | None
    accuracy: float | None
    reason: str | None
    fault: str | None
    train_s: float | None
    started_at: datetime
    finished_at: datetime | None
    paid: int


class SubtaskView(BaseModel):
    id: int
    round: int
    chunk: int
    kind: str
    status: str
    rows: int
    attempt: int
    agent_id: str | None
    phase: str | None
    progress: float | None
    epoch: int | None
    loss: float | None
    accuracy: float | None
    duration_s: float | None
    reason: str | None
    attempts: list[AttemptView]


class RoundView(BaseModel):
    round: int
    opened_at: datetime
    closed_at: datetime | None
    updates_used: int | None
    rows_used: int | None
    convergence_delta: float | None
    step_norm: float | None
    mean_loss: float | None
    mean_accuracy: float | None
    global_model_sha256: str | None


class EventView(BaseModel):
    id: int
    at: datetime
    what: str
    subtask_id: int | None
    old: str | None
    new: str
    text: str


class JobSummary(BaseModel):
    """A job as the list shows it."""

    id: int
    title: str
    status: str
    reason: str | None
    dataset_id: int
    dataset_name: str
    chunks: int
    rounds: int
    current_round: int
    strategy: str
    partitioner: str
    price: int
    total_subtasks: int
    completed_subtasks: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobView(JobSummary):
    arguments: list[str]
    partitioner_options: dict[str, Any]
    """With their defaults."""
    strategy_options: dict[str, Any]
    """With their defaults."""
    hyperparameters: dict[str, Any]
    time_limit_s: int
    needs: Needs
    min_updates: int
    seed: int
    units: int
    held: int
    """Credits of this job that still lie in escrow."""
    paid: int
    """Credits that went to sellers so far."""
    warnings: list[str]
    waiting_for: str | None
    """In words, what a job that is not at its end waits for."""
    round_list: list[RoundView]
    subtasks: list[SubtaskView]
    """Those of the current round, or of `?round=`."""
    events: list[EventView]
    """The latest 200, oldest first."""


class DownloadView(BaseModel):
    job_id: int
    title: str
    status: str
    final_result_url: str | None


class AgentResult(BaseModel):
    agent_id: str
    updates: int
    rows: int
    mean_loss: float | None
    mean_accuracy: float | None
    train_s: float


class RoundResult(BaseModel):
    """One agent in one round."""

    round: int
    agent_id: str
    mean_loss: float | None
    mean_accuracy: float | None


class ResultsView(BaseModel):
    """Of the last round in which an update was accepted. Means are weighted by rows."""

    job_id: int
    status: str
    reason: str | None
    round: int | None
    rows: int
    mean_loss: float | None
    mean_accuracy: float | None
    convergence_delta: float | None
    per_agent: list[AgentResult]
    per_round: list[RoundResult]
    """The course of each agent over all rounds, for charts."""
    errors: list[str]


class CardRound(BaseModel):
    round: int
    updates: int
    rows: int
    convergence_delta: float | None
    step_norm: float | None
    sha256: str | None


class CardShare(BaseModel):
    agent_id: str
    updates: int
    share: float
    """Of all rows that accepted updates were trained on, over all rounds."""
    train_s: float


class ModelCard(BaseModel):
    job_id: int
    title: str
    status: str
    created_at: datetime
    finished_at: datetime | None
    model_sha256: str | None
    model_bytes: int | None
    script_sha256: str
    dataset: str
    dataset_sha256: str
    rows: int
    columns: list[str]
    chunks: int
    partitioner: str
    partitioner_options: dict[str, Any]
    strategy: str
    strategy_options: dict[str, Any]
    hyperparameters: dict[str, Any]
    arguments: list[str]
    seed: int
    mean_loss: float | None
    mean_accuracy: float | None
    rounds: list[CardRound]
    agents: list[CardShare]
    grid_x: str
    """The server's version."""


class ArtifactView(BaseModel):
    kind: str
    """`final_model`, `global_model`, `update`, `script` or `requirements`."""
    round: int | None = None
    subtask_id: int | None = None
    chunk: int | None = None
    agent_id: str | None = None
    epoch: int | None = None
    size: int | None = None
    sha256: str | None = None
    created_at: datetime | None = None
    url: str


class ArtifactList(BaseModel):
    items: list[ArtifactView]
    next: int | None = None


class MetricView(BaseModel):
    round: int
    chunk: int
    agent_id: str
    attempt: int
    seq: int
    epoch: int | None
    loss: float | None
    accuracy: float | None
    more: dict[str, float]
    at: datetime


class MetricList(BaseModel):
    items: list[MetricView]
    next: str | None = None


class LogView(BaseModel):
    subtask_id: int
    round: int
    chunk: int
    attempt: int
    agent_id: str
    text: str
    total_bytes: int


class LogList(BaseModel):
    items: list[LogView]
    next: int | None = None


class Message(BaseModel):
    message: str
