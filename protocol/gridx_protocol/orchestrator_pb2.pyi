from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterRequest(_message.Message):
    __slots__ = ("worker_id", "instance", "address", "port", "task_id", "lease_token", "handshake_port")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKE_PORT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    instance: str
    address: str
    port: int
    task_id: int
    lease_token: str
    handshake_port: int
    def __init__(self, worker_id: _Optional[str] = ..., instance: _Optional[str] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., task_id: _Optional[int] = ..., lease_token: _Optional[str] = ..., handshake_port: _Optional[int] = ...) -> None: ...

class RegisterReply(_message.Message):
    __slots__ = ("rank", "world_size", "local_rank", "master_address", "master_port", "session", "heartbeat_s")
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RANK_FIELD_NUMBER: _ClassVar[int]
    MASTER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MASTER_PORT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_S_FIELD_NUMBER: _ClassVar[int]
    rank: int
    world_size: int
    local_rank: int
    master_address: str
    master_port: int
    session: str
    heartbeat_s: float
    def __init__(self, rank: _Optional[int] = ..., world_size: _Optional[int] = ..., local_rank: _Optional[int] = ..., master_address: _Optional[str] = ..., master_port: _Optional[int] = ..., session: _Optional[str] = ..., heartbeat_s: _Optional[float] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("session", "rank", "epoch", "step", "loss", "samples_per_s", "task_id", "lease_token")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_S_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session: str
    rank: int
    epoch: int
    step: int
    loss: float
    samples_per_s: float
    task_id: int
    lease_token: str
    def __init__(self, session: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ..., step: _Optional[int] = ..., loss: _Optional[float] = ..., samples_per_s: _Optional[float] = ..., task_id: _Optional[int] = ..., lease_token: _Optional[str] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("stop", "reason")
    STOP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    stop: bool
    reason: str
    def __init__(self, stop: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class Peer(_message.Message):
    __slots__ = ("rank", "address", "port")
    RANK_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    rank: int
    address: str
    port: int
    def __init__(self, rank: _Optional[int] = ..., address: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class CanStartRequest(_message.Message):
    __slots__ = ("session", "rank", "task_id", "lease_token", "reached", "unreachable")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    UNREACHABLE_FIELD_NUMBER: _ClassVar[int]
    session: str
    rank: int
    task_id: int
    lease_token: str
    reached: _containers.RepeatedScalarFieldContainer[int]
    unreachable: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session: _Optional[str] = ..., rank: _Optional[int] = ..., task_id: _Optional[int] = ..., lease_token: _Optional[str] = ..., reached: _Optional[_Iterable[int]] = ..., unreachable: _Optional[_Iterable[int]] = ...) -> None: ...

class CanStartReply(_message.Message):
    __slots__ = ("can_start", "waiting_for", "registered", "world_size", "master_address", "master_port", "stop", "reason", "peers")
    CAN_START_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    MASTER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MASTER_PORT_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    can_start: bool
    waiting_for: str
    registered: int
    world_size: int
    master_address: str
    master_port: int
    stop: bool
    reason: str
    peers: _containers.RepeatedCompositeFieldContainer[Peer]
    def __init__(self, can_start: _Optional[bool] = ..., waiting_for: _Optional[str] = ..., registered: _Optional[int] = ..., world_size: _Optional[int] = ..., master_address: _Optional[str] = ..., master_port: _Optional[int] = ..., stop: _Optional[bool] = ..., reason: _Optional[str] = ..., peers: _Optional[_Iterable[_Union[Peer, _Mapping]]] = ...) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ("session", "rank", "task_id", "lease_token", "train_s", "loss", "accuracy")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRAIN_S_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    session: str
    rank: int
    task_id: int
    lease_token: str
    train_s: float
    loss: float
    accuracy: float
    def __init__(self, session: _Optional[str] = ..., rank: _Optional[int] = ..., task_id: _Optional[int] = ..., lease_token: _Optional[str] = ..., train_s: _Optional[float] = ..., loss: _Optional[float] = ..., accuracy: _Optional[float] = ...) -> None: ...

class LeaveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AbortRequest(_message.Message):
    __slots__ = ("session", "rank", "task_id", "lease_token", "reason")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    session: str
    rank: int
    task_id: int
    lease_token: str
    reason: str
    def __init__(self, session: _Optional[str] = ..., rank: _Optional[int] = ..., task_id: _Optional[int] = ..., lease_token: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AbortReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
