"""What a buyer may choose for a job: the bodies of a submission."""

import json
import math
import shlex
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from gridx.core.text import Text, check_text
from gridx.jobs.recipes import options as recipes
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


def _model(name: str) -> str:
    model_type = recipes.canonical(name)
    if model_type not in recipes.MODELS:
        raise ValueError(f"{name!r} is not one of {', '.join(recipes.MODELS)}")
    return model_type


class EarlyStopping(BaseModel):
    """End a job when the held-out rows have shown nothing better for `patience` rounds."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    patience: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 3
    min_delta: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    monitor: Literal["accuracy", "loss"] | None = None
    """What is looked at; accuracy where the script reports it, else loss."""


class JobOptions(BaseModel):
    """What may be chosen for a job, with the defaults of the form. An unknown field is refused: it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[Text, Field(min_length=1, max_length=200)]
    model_type: Annotated[Text, Field(max_length=64), AfterValidator(_model)] | None = None
    """`mlp`, `cnn`, `logistic_regression` or `linear_regression`, instead of a script; its hyperparameters are checked."""
    arguments: Annotated[list[Annotated[Text, Field(max_length=1000)]], Field(max_length=100), BeforeValidator(_command_line)] = []
    """The script's command line, as a list or as one string in shell quoting."""
    mode: Literal["federated", "ddp"] = "federated"
    """`ddp`: one synchronous training of as many ranks as there are chunks."""
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 5
    rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 1
    partitioner: Annotated[Text, Field(max_length=32)] = "iid"
    partitioner_options: Hyperparameters = {}
    """The partitioner's own, see docs/algorithms.md."""
    strategy: Annotated[Text, Field(max_length=32)] = "fedavg"
    strategy_options: Hyperparameters = {}
    """The strategy's own, see docs/algorithms.md."""
    hyperparameters: Annotated[Hyperparameters, Field(validate_default=True)] = {}
    time_limit_s: Annotated[int, Field(ge=10, le=MAX_TIME_LIMIT_S)] = 3600
    needs: Needs = Needs()
    min_updates: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] | None = None
    """Updates that a round needs; all its chunks by default. Without a deadline it waits for every chunk whose attempts are not spent."""
    fraction: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0
    """Share of the chunks that train in a round, drawn anew for each."""
    round_deadline_s: Annotated[int, Field(ge=10, le=MAX_TIME_LIMIT_S)] | None = None
    """A round closes then with what is there, if that is `min_updates`; else it gets as much time once more."""
    backups: bool = True
    """Give a chunk that is late to a second machine as well."""
    held_out: Annotated[float, Field(ge=0, le=0.5, allow_inf_nan=False)] = 0.0
    """Share of the rows that no chunk gets: the script's evaluate() scores each round's model on them."""
    evaluations: Annotated[int, Field(ge=1, le=2)] = 2
    """Sellers whose machines score a round's model; each is paid for it as for a chunk."""
    early_stopping: EarlyStopping | None = None
    initial_job_id: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """Start from a model of an earlier job of the same buyer: of `initial_round`, else of its best round, else of its last."""
    initial_round: Annotated[int, Field(ge=0, le=MAX_ROUNDS)] | None = None
    """0: the model that the earlier job itself started from."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Deals rows and starts the scripts' random numbers; drawn when not given."""
    keep_updates: bool = False
    require_idle: bool = False
    """Refuse instead of waiting when fewer agents are idle than there are chunks."""

    @field_validator("hyperparameters")
    @classmethod
    def _suit_the_model(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """With their defaults. A wrong one is named beside all other wrong fields."""
        model_type = info.data.get("model_type")
        return value if model_type is None else recipes.parse(model_type, value).model_dump()


class JobRequest(JobOptions):
    """POST /jobs: a script, or a model to be trained without one, over a dataset that is already there."""

    title: Annotated[Text, Field(min_length=1, max_length=200, validation_alias=AliasChoices("title", "job_name"))]
    dataset_id: Annotated[int, Field(ge=1, le=2**53)] | None = None
    dataset_name: Annotated[Text, Field(min_length=1, max_length=255)] | None = None
    """`mnist`, `fashion_mnist` or `synthetic`; else the newest of the caller's datasets with this name. Instead of `dataset_id`."""
    target_column: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    """What a no-code job predicts; needed for a dataset of one's own."""
    script: Annotated[Text, Field(min_length=1, max_length=1024 * 1024)] | None = None
    requirements: Annotated[Text, Field(max_length=64 * 1024)] = ""
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS, validation_alias=AliasChoices("chunks", "shard_count"))] = 5

    @model_validator(mode="after")
    def _names_one_of_each(self) -> Self:
        if (self.dataset_id is None) == (self.dataset_name is None):
            raise ValueError("give either dataset_id or dataset_name")
        if (self.script is None) == (self.model_type is None):
            raise ValueError("give either script or model_type")
        if self.model_type is None and self.target_column is not None:
            raise ValueError("target_column is for jobs with a model_type; a script knows its columns")
        if self.model_type is not None and (self.arguments or self.requirements):
            raise ValueError("arguments and requirements are for jobs with a script; a model_type brings its own")
        return self
