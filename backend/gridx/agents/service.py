"""Keys, registration, tokens and presence of agents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, String, and_, bindparam, case, column, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.accounts.models import User
from gridx.agents.models import Agent, EnrolmentKey
from gridx.core.db import UtcDateTime, table_of
from gridx.core.errors import Forbidden, GridxError, NotAuthenticated, NotFound
from gridx.core.tokens import hash_secret, new_secret
from gridx.core.wakeup import notify
from gridx_protocol import PROTOCOL_VERSION, Profile, RegisterRequest

_REGISTER_ADVICE = (
    "this agent's token is not valid: it was revoked, or an agent of the same name registered again elsewhere. "
    "Start the worker with its enrolment key to register again"
)
_KEY_ADVICE = "this enrolment key is not valid or was revoked. Make a new one with POST /agent/keys"


# Every call of every agent runs one of these: Core statements, built once, that load no objects.
_agents, _users = table_of(Agent), table_of(User)
_may_work = and_(_agents.c.token_hash.is_not(None), _agents.c.removed_at.is_(None), _agents.c.ban_reason.is_(None))
_ACTOR = (
    _agents.c.id,
    _agents.c.owner_id,
    _agents.c.ram_bytes,
    _agents.c.gpu_count,
    _agents.c.vram_bytes,
    _agents.c.accepts,
    _agents.c.quarantined_until,
    _agents.c.token_hash,
    _agents.c.last_seen_at,
)
_LOCK = (
    update(_agents)
    .where(_agents.c.id == bindparam("agent"), _may_work)
    .values(last_seen_at=case((_agents.c.last_seen_at < bindparam("now"), bindparam("now")), else_=_agents.c.last_seen_at))
)
_WHO = (
    select(*_ACTOR, _agents.c.ban_reason, _users.c.is_disabled)
    .join(_users, _users.c.id == _agents.c.owner_id)
    .where(_agents.c.token_hash == bindparam("token_hash"))
)
_among = _agents.c.token_hash.in_(bindparam("token_hashes", expanding=True))
_VALID = (
    select(_agents.c.token_hash).join(_users, _users.c.id == _agents.c.owner_id).where(_among, _may_work, _users.c.is_disabled.is_(False))
)
_LOCK_FREE = select(*_ACTOR).where(_among, _may_work).with_for_update(key_share=True, skip_locked=True)
_SEEN = (
    update(_agents).where(_agents.c.id == bindparam("agent"), _agents.c.last_seen_at < bindparam("at")).values(last_seen_at=bindparam("at"))
)
# On PostgreSQL a whole batch is one statement. A row that is locked is just being written by a call of its agent, or by who ends it.
_heard = (
    func.unnest(bindparam("ids", type_=ARRAY(String)), bindparam("times", type_=ARRAY(UtcDateTime)))
    .table_valued(column("id", String), column("at", UtcDateTime))
    .render_derived(name="heard")
)
_free = (
    select(_agents.c.id, _heard.c.at)
    .join(_heard, _heard.c.id == _agents.c.id)
    .where(_agents.c.last_seen_at < _heard.c.at)
    .with_for_update(of=_agents, key_share=True, skip_locked=True)
    .cte("free")
)
_SEEN_MANY = update(_agents).where(_agents.c.id == _free.c.id).values(last_seen_at=_free.c.at)


class AgentIdTaken(GridxError):
    status = 409
    code = "agent_id_taken"


class ProtocolMismatch(GridxError):
    status = 400
    code = "protocol_mismatch"


@dataclass(frozen=True)
class AgentActor:
    """The agent that makes a call, as far as its token tells."""

    id: str
    owner_id: int
    ram_bytes: int
    gpu_count: int
    vram_bytes: int
    accepts: str = "all"
    quarantined_until: datetime | None = None
    token_hash: str | None = None
    last_seen_at: datetime | None = None
    """As the database knows it; what was heard since comes with the next batch."""

    def is_quarantined(self, now: datetime) -> bool:
        return self.quarantined_until is not None and self.quarantined_until > now


@dataclass(frozen=True)
class Registration:
    agent_id: str
    token: str
    is_new: bool


def create_key(session: Session, owner_id: int, label: str, now: datetime) -> tuple[EnrolmentKey, str]:
    """A new enrolment key and its plain text, which nobody sees again."""
    plain = new_secret("gxk")
    key = EnrolmentKey(owner_id=owner_id, label=label, key_hash=hash_secret(plain), created_at=now)
    session.add(key)
    session.flush()
    return key, plain


def list_keys(session: Session, owner_id: int) -> Sequence[EnrolmentKey]:
    return session.scalars(select(EnrolmentKey).where(EnrolmentKey.owner_id == owner_id).order_by(EnrolmentKey.id.desc())).all()


def revoke_key(session: Session, owner_id: int, key_id: int, now: datetime) -> list[str]:
    """End a key and the tokens of its agents. Returns those agents' ids, so that their leases can be ended as well."""
    key = session.get(EnrolmentKey, key_id)
    if key is None or key.owner_id != owner_id:
        raise NotFound("there is no such enrolment key")
    key.revoked_at = key.revoked_at or now
    agent_ids = list(session.scalars(select(Agent.id).where(Agent.key_id == key_id)))
    session.execute(update(Agent).where(Agent.key_id == key_id).values(token_hash=None))
    notify(session)
    return agent_ids


def register(session: Session, key: str, request: RegisterRequest, now: datetime) -> Registration:
    """Register a machine, or take a known one back under a new token; its former token ends.

    Raises:
        NotAuthenticated: the key is unknown or revoked.
        AgentIdTaken: another seller's agent has this id.
        Forbidden: the agent was banned.
        ProtocolMismatch: the worker speaks another version.
    """
    if request.protocol_version != PROTOCOL_VERSION:
        raise ProtocolMismatch(
            f"this server speaks protocol {PROTOCOL_VERSION}, the worker {request.protocol_version}; install the worker this server offers"
        )
    enrolment = session.scalar(select(EnrolmentKey).where(EnrolmentKey.key_hash == hash_secret(key)))
    if enrolment is None or enrolment.revoked_at is not None or session.get_one(User, enrolment.owner_id).is_disabled:
        raise NotAuthenticated(_KEY_ADVICE)
    token = new_secret("gxa")
    agent = session.get(Agent, request.agent_id, with_for_update=True)
    if agent is None:
        _insert(session, enrolment, request, token, now)
        return Registration(request.agent_id, token, is_new=True)
    if agent.owner_id != enrolment.owner_id:
        raise AgentIdTaken(f"the name {request.agent_id!r} belongs to another provider's machine; choose another with --name")
    if agent.ban_reason is not None:
        raise Forbidden(f"this machine was banned: {agent.ban_reason}")
    _describe(agent, request, now)
    agent.key_id, agent.token_hash, agent.last_seen_at, agent.removed_at = enrolment.id, hash_secret(token), now, None
    notify(session)
    return Registration(agent.id, token, is_new=False)


def authenticate(session: Session, token: str) -> AgentActor:
    """The agent that a Bearer token belongs to. Raises NotAuthenticated with advice."""
    found = session.connection().execute(_WHO, {"token_hash": hash_secret(token)}).one_or_none()
    if found is None:
        raise ended_token()
    *known, ban_reason, is_disabled = found
    if is_disabled:
        raise NotAuthenticated("the account of this machine's provider is disabled; ask the server's administrator")
    if ban_reason is not None:
        raise NotAuthenticated(f"this machine was banned: {ban_reason}")
    return AgentActor(*known)


def ended_token() -> NotAuthenticated:
    """What an agent is told whose token is no longer valid."""
    return NotAuthenticated(_REGISTER_ADVICE)


def valid_tokens(session: Session, token_hashes: Collection[str]) -> set[str]:
    """Those of these token hashes whose agents may still work."""
    return set(session.connection().scalars(_VALID, {"token_hashes": list(token_hashes)}))


def set_profile(session: Session, agent_id: str, profile: Profile, now: datetime) -> None:
    """Keep what a machine says of itself. A profile without a doctor's report leaves the last one."""
    _set_profile(session.get_one(Agent, agent_id), profile, now)


def quarantine(session: Session, agent_id: str, until: datetime, reason: str) -> None:
    """Give a machine no work until then."""
    session.execute(update(Agent).where(Agent.id == agent_id).values(quarantined_until=until, quarantine_reason=reason))


def lock(session: Session, agent_id: str, now: datetime) -> None:
    """Note that an agent was heard of, and let its other calls wait for the end of this transaction: two never get two attempts.

    Raises NotAuthenticated when the agent's token ended since the call began.
    """
    if session.connection().execute(_LOCK, {"agent": agent_id, "now": now}).rowcount != 1:
        raise ended_token()


def lock_free(session: Session, token_hashes: Collection[str]) -> dict[str, AgentActor]:
    """Lock as many of the agents with these tokens as nobody else has locked. Returns them as they stand now, by id."""
    rows = session.connection().execute(_LOCK_FREE, {"token_hashes": list(token_hashes)})
    return {row.id: AgentActor(*row) for row in rows}


def touch(session: Session, agent_id: str, now: datetime) -> None:
    """Note that an agent was heard of."""
    session.connection().execute(_SEEN, {"agent": agent_id, "at": now})


def note_seen(session: Session, seen: Mapping[str, datetime]) -> None:
    """Note when each of many agents was heard of."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(_SEEN_MANY, {"ids": list(seen), "times": list(seen.values())})
    else:
        session.connection().execute(_SEEN, [{"agent": agent_id, "at": at} for agent_id, at in seen.items()])


def remove(session: Session, owner_id: int, agent_id: str, now: datetime) -> None:
    """Take a machine off the seller's list and end its token."""
    agent = session.get(Agent, agent_id)
    if agent is None or agent.owner_id != owner_id or agent.removed_at is not None:
        raise NotFound(f"you have no machine named {agent_id!r}")
    agent.removed_at, agent.token_hash = now, None
    notify(session)


def ban(session: Session, agent_id: str, reason: str) -> None:
    """Keep a machine out until an administrator lifts it."""
    agent = session.get(Agent, agent_id)
    if agent is None:
        raise NotFound(f"there is no machine named {agent_id!r}")
    agent.ban_reason, agent.token_hash = reason, None
    notify(session)


def lift_ban(session: Session, agent_id: str) -> None:
    agent = session.get(Agent, agent_id)
    if agent is None:
        raise NotFound(f"there is no machine named {agent_id!r}")
    agent.ban_reason = None


def is_online(now: datetime, offline_after_s: float) -> ColumnElement[bool]:
    """Whether an agent was heard of lately and may work."""
    return and_(
        Agent.last_seen_at > now - timedelta(seconds=offline_after_s),
        Agent.removed_at.is_(None),
        Agent.token_hash.is_not(None),
        Agent.ban_reason.is_(None),
    )


def online_sellers(session: Session, now: datetime, offline_after_s: float, *suiting: ColumnElement[bool]) -> set[int]:
    """Ids of the sellers who have a machine online that meets all conditions."""
    return set(session.scalars(select(Agent.owner_id).where(is_online(now, offline_after_s), *suiting).distinct()))


def _insert(session: Session, key: EnrolmentKey, request: RegisterRequest, token: str, now: datetime) -> None:
    agent = Agent(
        id=request.agent_id,
        owner_id=key.owner_id,
        key_id=key.id,
        token_hash=hash_secret(token),
        registered_at=now,
        last_seen_at=now,
    )
    _describe(agent, request, now)
    try:
        with session.begin_nested():
            session.add(agent)
    except IntegrityError:
        raise AgentIdTaken(f"the name {request.agent_id!r} was taken just now; try again") from None


def _describe(agent: Agent, request: RegisterRequest, now: datetime) -> None:
    hardware = request.hardware
    agent.hardware = hardware.model_dump()
    if request.profile is not None:
        _set_profile(agent, request.profile, now)
    agent.ram_bytes, agent.gpu_count, agent.vram_bytes = hardware.ram_bytes, hardware.gpu_count, hardware.vram_bytes


def _set_profile(agent: Agent, profile: Profile, now: datetime) -> None:
    agent.accepts, agent.paused = profile.accepts, profile.paused
    if profile.doctor is not None:
        ran_at = now - timedelta(seconds=profile.doctor.age_s)
        agent.doctor = profile.doctor.model_dump(exclude={"age_s"}) | {"at": ran_at.isoformat()}
