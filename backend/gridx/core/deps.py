"""What routers ask of the application: sessions, settings, the clock. The commit happens before the answer is sent (`scope="function"`)."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from gridx.core.clock import Clock
from gridx.core.db import Database
from gridx.core.settings import Settings


def get_database(request: Request) -> Database:
    return request.app.state.database


def get_settings(request: Request) -> Settings:
    return request.app.state.settings


def get_clock(request: Request) -> Clock:
    return request.app.state.clock


def read_session(request: Request) -> Iterator[Session]:
    with get_database(request).read() as session:
        yield session


def write_session(request: Request) -> Iterator[Session]:
    with get_database(request).write() as session:
        yield session


DatabaseDep = Annotated[Database, Depends(get_database)]
SettingsDep = Annotated[Settings, Depends(get_settings)]
ClockDep = Annotated[Clock, Depends(get_clock)]
ReadSession = Annotated[Session, Depends(read_session, scope="function")]
WriteSession = Annotated[Session, Depends(write_session, scope="function")]
