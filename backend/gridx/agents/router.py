"""Enrolment keys (sellers) and registration (machines)."""

import structlog
from fastapi import APIRouter

from gridx.accounts.deps import SellerUser
from gridx.agents import service
from gridx.agents.deps import BearerToken
from gridx.agents.schemas import KeyCreated, KeyList, KeyRequest, KeyView
from gridx.core.deps import ClockDep, ReadSession, SettingsDep, WriteSession
from gridx.core.http import ERRORS
from gridx_protocol import RegisterReply, RegisterRequest

router = APIRouter(prefix="/agent", tags=["agents"], responses=ERRORS)
_log = structlog.get_logger()


@router.post("/keys", status_code=201)
def create_key(body: KeyRequest, actor: SellerUser, session: WriteSession, clock: ClockDep) -> KeyCreated:
    key, plain = service.create_key(session, actor.id, body.label, clock.now())
    return KeyCreated(id=key.id, label=key.label, key=plain)


@router.get("/keys")
def list_keys(actor: SellerUser, session: ReadSession) -> KeyList:
    return KeyList(items=[KeyView.model_validate(key) for key in service.list_keys(session, actor.id)])


@router.post("/register")
def register(body: RegisterRequest, key: BearerToken, session: WriteSession, clock: ClockDep, settings: SettingsDep) -> RegisterReply:
    done = service.register(session, key, body, clock.now())
    _log.info("registered", agent=done.agent_id, returning=not done.is_new, isolation=body.hardware.isolation)
    return RegisterReply(agent_id=done.agent_id, token=done.token, heartbeat_s=settings.heartbeat_s, poll_s=settings.poll_s)
