"""The worker as this server offers it: the two wheels that speak its protocol, and a script that installs them.

The wheels are built by `make setup` into `gridx/_wheels`. They hold what any provider gets, so nobody has to log in for them.
"""

import hashlib
import shlex
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, PlainTextResponse
from pydantic import BaseModel

from gridx.core.deps import SettingsDep
from gridx.core.errors import NotFound
from gridx.core.http import ERRORS
from gridx.core.settings import Settings

router = APIRouter(tags=["downloads"], responses=ERRORS)

_PACKAGE = Path(str(files("gridx")))
_DISTRIBUTIONS = ("gridx_protocol", "gridx_worker")
_ABSENT = "this server offers no worker: its wheels were not built (`make wheels` on the server builds them, `make setup` includes it)"


class WheelView(BaseModel):
    name: str
    url: str
    bytes: int
    sha256: str


class WorkerView(BaseModel):
    version: str
    install_url: str
    items: list[WheelView]
    next: int | None = None


@dataclass(frozen=True)
class Offer:
    """Protocol first: the worker needs it."""

    version: str
    wheels: tuple[Path, ...]


def get_offer() -> Offer:
    return find_offer(_PACKAGE / "_wheels", _own_version())


OfferDep = Annotated[Offer, Depends(get_offer)]


@router.get("/install.sh", response_class=PlainTextResponse)
def install_script(request: Request, offer: OfferDep, settings: SettingsDep) -> PlainTextResponse:
    """A shell script that installs the worker into ~/.gridx-worker/venv and says how to run it."""
    text = make_script((_PACKAGE / "install.sh").read_text(encoding="utf-8"), offer, _own_url(request, settings))
    # It names the address it was asked for under, so it is nobody else's.
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


@router.get("/downloads/worker")
def list_wheels(request: Request, offer: OfferDep, settings: SettingsDep) -> WorkerView:
    """The worker's wheels: of this server's own version, which is the one that speaks its protocol."""
    server = _own_url(request, settings)
    items = [
        WheelView(name=path.name, url=f"{server}/downloads/{path.name}", bytes=path.stat().st_size, sha256=_sha256(path))
        for path in offer.wheels
    ]
    return WorkerView(version=offer.version, install_url=f"{server}/install.sh", items=items)


@router.get("/downloads/{file}", response_class=FileResponse)
def download_wheel(file: str, offer: OfferDep) -> FileResponse:
    """One of the wheels, by its name."""
    for path in offer.wheels:
        if path.name == file:
            return FileResponse(path, media_type="application/octet-stream", filename=file, headers={"Cache-Control": "no-cache"})
    raise NotFound(f"there is no such file; this server offers {' and '.join(path.name for path in offer.wheels)}")


def find_offer(folder: Path, wanted: str) -> Offer:
    """The wheels of one version in a folder. Raises NotFound unless both are there."""
    wheels = tuple(folder / f"{name}-{wanted}-py3-none-any.whl" for name in _DISTRIBUTIONS)
    if not all(path.is_file() for path in wheels):
        raise NotFound(_ABSENT)
    return Offer(wanted, wheels)


def make_script(template: str, offer: Offer, server: str) -> str:
    """The script for one server. Every value is quoted for the shell: the address is what the caller's Host header says."""
    urls = [f"{server}/downloads/{path.name}#sha256={_sha256(path)}" for path in offer.wheels]
    values = {"SERVER": server, "VERSION": offer.version, "PROTOCOL_WHEEL": urls[0], "WORKER_WHEEL": urls[1]}
    for name, value in values.items():
        template = template.replace(f"@{name}@", shlex.quote(value))
    return template


def _own_url(request: Request, settings: Settings) -> str:
    return (settings.public_url or str(request.base_url)).rstrip("/")


def _own_version() -> str:
    try:
        return version("gridx-backend")
    except PackageNotFoundError:
        return "0"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
