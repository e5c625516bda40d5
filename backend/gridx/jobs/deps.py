"""What the jobs' routers ask of the application beside `core/deps.py`."""

from typing import Annotated

from fastapi import Depends, Request

from gridx.datasets.catalogue import Catalogue


def get_catalogue(request: Request) -> Catalogue:
    return request.app.state.catalogue


CatalogueDep = Annotated[Catalogue, Depends(get_catalogue)]
