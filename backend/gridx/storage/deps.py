"""The application's object store, for routers."""

from typing import Annotated

from fastapi import Depends, Request

from gridx.storage.base import ObjectStore


async def get_store(request: Request) -> ObjectStore:
    return request.app.state.store


StoreDep = Annotated[ObjectStore, Depends(get_store)]
