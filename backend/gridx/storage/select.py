"""Which store the settings name."""

from gridx.core.clock import Clock
from gridx.core.settings import Settings
from gridx.storage.base import ObjectStore
from gridx.storage.local import LocalStore


def make_store(settings: Settings, clock: Clock | None = None) -> ObjectStore:
    """The object store of this server: files under GRIDX_HOME."""
    secret = settings.jwt_secret_key.get_secret_value()
    return LocalStore(settings.home / "objects", secret, public_url=settings.public_url, clock=clock)
