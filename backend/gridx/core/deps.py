"""What routers ask of the application: sessions, settings, the clock. The commit happens before the answer is sent (`scope="function"`).

What does not block is `async`: FastAPI would give anything else to a worker thread, one for each parameter of each call.
"""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from gridx.core.clock import Clock
from gridx.core.db import Database
from gridx.core.settings import Settings


async def get_database(request: Request) -> Database:
    return request.app.state.database


async def get_settings(request: Request) -> Settings:
    return request.app.state.settings


async def get_clock(request: Request) -> Clock:
    return request.app.state.clock


def read_session(request: Request) -> Iterator[Session]:
    with request.app.state.database.read() as session:
        yield session


def write_session(request: Request) -> Iterator[Session]:
    with request.app.state.database.write() as session:
        yield session


DatabaseDep = Annotated[Database, Depends(get_database)]
SettingsDep = Annotated[Settings, Depends(get_settings)]
ClockDep = Annotated[Clock, Depends(get_clock)]
ReadSession = Annotated[Session, Depends(read_session, scope="function")]
WriteSession = Annotated[Session, Depends(write_session, scope="function")]
