"""Request and reply bodies of the `/agent/...` routes.

Sizes are in bytes, durations in seconds. Durations rather than points in time cross the wire, so that an agent's clock may be wrong.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

PROTOCOL_VERSION = 1

type_id = Annotated[int, Field(ge=1, le=2**53)]

Isolation = Literal["docker", "docker+runsc", "process"]

Phase = Literal["DOWNLOADING", "INSTALLING", "STARTING", "TRAINING", "UPLOADING"]

FailureKind = Literal[
    "script",  # the script raised, exited with another code than 0, or was killed by a signal of its own making
    "output",  # no model.pth, or it is no regular file, too large, empty
    "memory",  # killed for going over the memory limit
    "timeout",  # killed at the attempt's deadline
    "dependencies",  # requirements.txt could not be installed within the caps
    "agent",  # the agent's own trouble: disk, Docker, a download
    "shutdown",  # the agent was told to stop
]


class Message(BaseModel):
    """A body on the wire. Unknown fields are ignored, so that a newer peer may send more."""

    model_config = ConfigDict(extra="ignore")

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: Any) -> Any:
        """A script may print anything; what PostgreSQL cannot store becomes the replacement character."""
        if isinstance(value, str):
            return value.replace("\x00", "\N{REPLACEMENT CHARACTER}")
        if isinstance(value, dict):
            return {cls._without_nul(key): cls._without_nul(item) for key, item in cast("dict[Any, Any]", value).items()}
        return value


class ErrorBody(Message):
    """The body of every answer that is not 2xx."""

    code: str
    detail: str


class Hardware(Message):
    """What a machine is, as it reports itself at registration."""

    hostname: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    os: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    cores: Annotated[int, Field(ge=1, le=100_000)]
    ram_bytes: Annotated[int, Field(ge=0, le=2**60)]
    disk_free_bytes: Annotated[int, Field(ge=0, le=2**63 - 1)]
    gpu_name: Annotated[str, StringConstraints(max_length=255)] | None = None
    gpu_count: Annotated[int, Field(ge=0, le=1024)] = 0
    vram_bytes: Annotated[int, Field(ge=0, le=2**60)] = 0
    python_version: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Python inside the sandbox, which is what the buyer's script runs on."""
    torch_version: Annotated[str, StringConstraints(max_length=64)] | None = None
    """PyTorch inside the sandbox."""
    image_id: Annotated[str, StringConstraints(max_length=255)] | None = None
    isolation: Isolation
    worker_version: Annotated[str, StringConstraints(max_length=64)] | None = None


class DoctorCheck(Message):
    """One line of `gridx-worker doctor`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    problem: Annotated[str, StringConstraints(max_length=500)] | None = None
    """None: all is well."""
    fix: Annotated[str, StringConstraints(max_length=500)] | None = None


class DoctorReport(Message):
    """What `gridx-worker doctor` found on a machine."""

    age_s: Annotated[float, Field(ge=0, le=1e9)]
    """How long ago it ran."""
    checks: Annotated[list[DoctorCheck], Field(max_length=40)]
    score: Annotated[float, Field(ge=0, le=1e12)] | None = None
    """Samples per second of a fixed small training in the sandbox."""


class Profile(Message):
    """POST /agent/profile, at the agent's start and whenever it changes: what a machine takes, and how it stands."""

    accepts: Literal["all", "recipes"] = "all"
    """`recipes`: only jobs whose script is one of the server's own."""
    paused: Annotated[str, StringConstraints(max_length=200)] | None = None
    """Why it asks for no work now, as its provider set it: working hours, or the machine is in use."""
    doctor: DoctorReport | None = None


class ProfileReply(Message):
    """How the server sees the machine."""

    earned: int = 0
    """Credits that this machine was paid."""
    accepted: int = 0
    """Subtasks that were accepted from it."""
    idle_because: str | None = None
    """Why it has no work, in words; null when it has, or can have any moment."""


class RegisterRequest(Message):
    """POST /agent/register, Bearer enrolment key."""

    agent_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    hardware: Hardware
    profile: Profile | None = None
    protocol_version: int = PROTOCOL_VERSION


class RegisterReply(Message):
    agent_id: str
    token: str
    """Bearer token of every other agent call. A later registration of the same id ends it."""
    heartbeat_s: float
    poll_s: float


class HeartbeatRequest(Message):
    """POST /agent/heartbeat. With `task_id` it also extends that attempt's lease."""

    task_id: type_id | None = None
    lease_token: Annotated[str, StringConstraints(max_length=128)] | None = None
    phase: Phase | None = None
    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the attempt that is done, where the script reports it (epoch of epochs)."""
    epoch: Annotated[int, Field(ge=0, le=2**31)] | None = None


class HeartbeatReply(Message):
    heartbeat_s: float
    poll_s: float
    cancel: bool = False
    """Stop the current attempt now: its lease is gone. `cancel_reason` says why in words."""
    cancel_reason: str | None = None


class TaskRequest(Message):
    """POST /agent/request_task. An agent that already holds a live attempt gets that same attempt again: its reply was lost."""

    warm_job_ids: Annotated[list[type_id], Field(max_length=64)] = []
    """Jobs whose chunk or container this agent still holds; preferred by the dispatcher."""
    accept: Literal["all", "recipes"] = "all"
    wait_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    """How long the server may hold the call open until there is work. 0: answer at once."""


class Needs(Message):
    """What a job asks of an agent."""

    ram_bytes: Annotated[int, Field(ge=0, le=2**50)] = 0
    gpu: bool = False
    vram_bytes: Annotated[int, Field(ge=0, le=2**50)] = 0


class Limits(Message):
    """Caps that the agent enforces on one attempt, beside those its provider set (the smaller one counts)."""

    output_bytes: int = 2 * 1024**3
    outputs_count: int = 20
    outputs_bytes: int = 64 * 1024**2
    """Of the files in outputs/ together."""
    log_bytes: int = 10 * 1024**2
    install_s: float = 600.0
    install_bytes: int = 2 * 1024**3


class RankRequest(Message):
    """POST /agent/request_rank. An agent that already holds a rank in this slot gets it again."""

    slot: Annotated[int, Field(ge=1, le=64)]
    place: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """Agents that name the same place reach one another: a Docker daemon, a machine, or a network that the provider named."""
    address: Annotated[str, StringConstraints(max_length=255)] = ""
    """Under which the others reach this agent's ranks; empty where all share one machine."""
    warm_job_ids: Annotated[list[type_id], Field(max_length=64)] = []
    wait_s: Annotated[float, Field(ge=0, le=60)] = 0.0


class GangTask(Message):
    """What a rank of synchronous training needs beyond an ordinary attempt."""

    gang_id: int
    rank: int
    world_size: int
    orchestrator_port: int
    """gRPC, on the server's own host."""
    orchestrator_is_secure: bool = False
    secret: str
    """Shared by the members alone; names what they share on one machine."""
    master_port: int = 29500
    backend: Literal["gloo", "nccl"] = "gloo"
    checkpoint_url: str | None = None
    """What the last gang of this job saved; null at the first start."""
    checkpoint_sha256: str | None = None


class CheckpointUrlRequest(Message):
    """POST /agent/checkpoint_url: where to PUT a checkpoint."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    number: Annotated[int, Field(ge=1, le=2**31)]
    size: Annotated[int, Field(ge=1, le=2**43)]


class CheckpointRequest(Message):
    """POST /agent/checkpoint, after the upload. Repeating it is harmless."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    number: Annotated[int, Field(ge=1, le=2**31)]
    size: Annotated[int, Field(ge=1, le=2**43)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class TaskReply(Message):
    """An attempt to run, or `task_id` null and when to ask again. URLs are relative to the server or absolute; no header goes with them."""

    task_id: int | None = None
    poll_after_s: float | None = None
    ended_job_ids: list[int] = []
    """Those of the request's `warm_job_ids` that are over: what is kept for them may go."""

    job_id: int | None = None
    title: str | None = None
    kind: Literal["train", "evaluate", "rank"] = "train"
    attempt: int = 1
    lease_token: str | None = None
    lease_s: float = 60.0
    deadline_s: float = 3600.0
    """Seconds from this reply after which the attempt ends, whatever happens. Never extended."""

    code_url: str | None = None
    code_sha256: str | None = None
    requirements_url: str | None = None
    """Null when the job has no requirements. The content was checked line by line by the server."""
    chunk_data_url: str | None = None
    chunk_sha256: str | None = None
    chunk_bytes: int | None = None
    global_model_url: str | None = None
    """The global model to start from; null in round 1 unless the buyer gave one."""
    global_model_sha256: str | None = None
    schema_url: str | None = None

    arguments: list[str] = []
    hyperparameters: dict[str, Any] = {}
    round: int = 1
    rounds: int = 1
    chunk: int = 0
    chunks: int = 1
    rows: int = 0
    """Records in the chunk, header not counted."""
    seed: int = 0
    """The same for all chunks of a round."""
    limits: Limits = Limits()
    needs: Needs = Needs()
    gang: GangTask | None = None
    """Of subtasks of kind `rank`."""


class MetricPoint(Message):
    """One report of the script. `seq` counts from 0 within the attempt, so that a repeated call stores nothing twice."""

    seq: Annotated[int, Field(ge=0, le=1_000_000)]
    epoch: Annotated[int, Field(ge=0, le=2**31)] | None = None
    loss: float | None = None
    accuracy: float | None = None
    more: Annotated[dict[str, float], Field(max_length=32)] = {}


class MetricsRequest(Message):
    """POST /agent/metrics."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    points: Annotated[list[MetricPoint], Field(max_length=1000)]


class MetricsReply(Message):
    stored: int
    """Points that were new."""


class LogsRequest(Message):
    """POST /agent/logs. `offset` = bytes of output (UTF-8, as sent) before `text`, so that a repeated call stores nothing twice."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    offset: Annotated[int, Field(ge=0, le=2**53)]
    text: Annotated[str, StringConstraints(max_length=65536)]


class LogsReply(Message):
    offset: int
    """Bytes of output that the server has seen."""


class UploadUrlRequest(Message):
    """POST /agent/upload_url: where to PUT model.pth."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    size: Annotated[int, Field(ge=0, le=2**43)]
    """Bytes of the file about to be uploaded."""


class UploadUrlReply(Message):
    url: str
    """Relative to the server or absolute. PUT the bytes with `headers` and nothing else."""
    headers: dict[str, str] = {}
    expires_s: float


class OutputUrlRequest(Message):
    """POST /agent/output_url: where to PUT a file that the script left in outputs/. Before complete_task; may be repeated."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]
    size: Annotated[int, Field(ge=0, le=2**43)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class CompleteRequest(Message):
    """POST /agent/complete_task, after the upload. Repeating it is harmless."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, le=2**43)]
    metrics: Annotated[dict[str, float], Field(max_length=32)] = {}
    """Final metrics; `loss` and `accuracy` are the ones shown."""
    train_s: Annotated[float, Field(ge=0)] | None = None
    """How long the script ran."""


class CompleteReply(Message):
    status: Literal["VERIFYING", "COMPLETED", "REFUSED"]


class FailRequest(Message):
    """POST /agent/fail_task. Repeating it is harmless."""

    task_id: type_id
    lease_token: Annotated[str, StringConstraints(max_length=128)]
    kind: FailureKind
    reason: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    exit_code: int | None = None
