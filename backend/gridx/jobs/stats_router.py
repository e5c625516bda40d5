"""Machines and counts, as the overview, node and provider pages show them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from gridx.accounts.deps import CurrentUser
from gridx.core.deps import ClockDep, ReadSession, SettingsDep
from gridx.core.errors import NotFound
from gridx.core.http import ERRORS
from gridx.core.text import Text
from gridx.jobs import stats
from gridx.jobs.stats import AgentView, SellerTask, SummaryView

router = APIRouter(prefix="/stats", tags=["stats"], responses=ERRORS)

UserId = Annotated[int, Path(ge=1, le=2**53)]


@router.get("/summary")
def summary(session: ReadSession, clock: ClockDep, settings: SettingsDep) -> SummaryView:
    return stats.summary(session, clock.now(), settings.offline_after_s)


@router.get("/agents")
def list_agents(
    actor: CurrentUser,
    session: ReadSession,
    clock: ClockDep,
    settings: SettingsDep,
    status: Annotated[Literal["IDLE", "BUSY", "OFFLINE", "ONLINE"] | None, Query()] = None,
) -> list[AgentView]:
    return stats.list_agents(session, actor.id, clock.now(), settings.offline_after_s, status=status)


@router.get("/agents/online")
def list_online(actor: CurrentUser, session: ReadSession, clock: ClockDep, settings: SettingsDep) -> list[AgentView]:
    return stats.list_agents(session, actor.id, clock.now(), settings.offline_after_s, status="ONLINE")


@router.get("/agents/{agent_id}")
def get_agent(
    agent_id: Annotated[Text, Path(max_length=64)], actor: CurrentUser, session: ReadSession, clock: ClockDep, settings: SettingsDep
) -> AgentView:
    return stats.get_agent(session, actor.id, agent_id, clock.now(), settings.offline_after_s)


@router.get("/my-agents/{user_id}")
def my_agents(user_id: UserId, actor: CurrentUser, session: ReadSession, clock: ClockDep, settings: SettingsDep) -> list[AgentView]:
    if user_id != actor.id:
        raise NotFound(f"there is no user {user_id} that you may look at")
    return stats.list_agents(session, actor.id, clock.now(), settings.offline_after_s, owner_id=user_id)


@router.get("/seller-tasks/{user_id}")
def seller_tasks(user_id: UserId, actor: CurrentUser, session: ReadSession) -> list[SellerTask]:
    if user_id != actor.id:
        raise NotFound(f"there is no user {user_id} that you may look at")
    return stats.seller_tasks(session, actor.id)
