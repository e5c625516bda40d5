"""Bodies of the buyers' and everybody's routes."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from gridx.jobs.options import EarlyStopping
from gridx_protocol import Needs


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


class RankView(BaseModel):
    """A rank of a synchronous training."""

    rank: int
    agent_id: str
    state: str
    """RESERVED, an attempt's phase, READY, TRAINING; then the attempt's status."""
    epoch: int | None
    step: int | None
    loss: float | None
    samples_per_s: float | None
    seen_at: datetime | None


class GangView(BaseModel):
    """One try at a synchronous training: all its ranks begin and end together."""

    number: int
    status: str
    """FORMING, TRAINING, DONE or BROKEN."""
    reason: str | None
    """Why it was stopped."""
    started_at: datetime | None
    ended_at: datetime | None
    resumed_from: int | None
    """The number of the checkpoint that it started from; None from the beginning."""
    checkpoints: int
    """Sealed in this try."""
    ranks: list[RankView]


class EvaluationView(BaseModel):
    """The round's model on held-out rows: the mean of what the agents' runs of evaluate() returned."""

    metrics: dict[str, float]
    rows: int
    agents: list[str]
    differ: list[str]
    """Metrics in which two agents differ by more than a thousandth."""


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
    evaluation: EvaluationView | None
    deadline_at: datetime | None
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
    recipe: str | None
    """The `model_type` of a no-code job."""
    mode: str
    """`federated` or `ddp`."""
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
    chunks_per_round: int
    round_deadline_s: int | None
    backups: bool
    held_out_share: float
    evaluations: int
    """Evaluation subtasks of each round."""
    early_stopping: EarlyStopping | None
    has_initial_model: bool
    """It did not start anew: round 0 is the model that it started from."""
    best_round: int | None
    """The round whose model was best on the held-out rows."""
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
    gang: GangView | None
    """The latest try of a job of mode `ddp`."""
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
    held_out: dict[str, float]
    """What the script's evaluate() returned on the held-out rows; empty without any."""


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
    """`final_model`, `safetensors`, `best_model`, `global_model`, `initial_model`, `update`, `output`, `script`, `schema` or
    `requirements`."""
    filename: str
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
