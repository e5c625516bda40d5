"""Who calls, on the agents' routes. Cookies are ignored here: a page in a browser never acts as an agent."""

from typing import Annotated

from fastapi import Depends, Request

from gridx.agents.presence import Presence
from gridx.agents.service import AgentActor, authenticate
from gridx.core.deps import ClockDep, DatabaseDep
from gridx.core.errors import NotAuthenticated


async def bearer_token(request: Request) -> str:
    """The Bearer token of a request. Raises NotAuthenticated when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("this call needs the header 'Authorization: Bearer <token>'")
    return token.strip()


BearerToken = Annotated[str, Depends(bearer_token)]


async def get_presence(request: Request) -> Presence:
    return request.app.state.presence


PresenceDep = Annotated[Presence, Depends(get_presence)]


def current_agent(token: BearerToken, database: DatabaseDep, presence: PresenceDep, clock: ClockDep) -> AgentActor:
    """The agent that calls, which is thereby heard of."""
    with database.read() as session:
        agent = authenticate(session, token)
    presence.hear(agent, clock.now())
    return agent


CurrentAgent = Annotated[AgentActor, Depends(current_agent)]
