"""Who calls, on the agents' routes. Cookies are ignored here: a page in a browser never acts as an agent."""

from typing import Annotated

from fastapi import Depends, Request

from gridx.agents.service import AgentActor, authenticate
from gridx.core.deps import DatabaseDep
from gridx.core.errors import NotAuthenticated


def bearer_token(request: Request) -> str:
    """The Bearer token of a request. Raises NotAuthenticated when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("this call needs the header 'Authorization: Bearer <token>'")
    return token.strip()


def current_agent(request: Request, database: DatabaseDep) -> AgentActor:
    token = bearer_token(request)
    with database.read() as session:
        return authenticate(session, token)


BearerToken = Annotated[str, Depends(bearer_token)]
CurrentAgent = Annotated[AgentActor, Depends(current_agent)]
