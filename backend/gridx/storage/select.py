"""Which store the settings name."""

from gridx.core.clock import Clock
from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings
from gridx.storage.base import ObjectStore
from gridx.storage.local import LocalStore


def make_store(settings: Settings, clock: Clock | None = None) -> ObjectStore:
    """The object store of this server: a bucket of Supabase Storage when SUPABASE_URL is set, else files under GRIDX_HOME.

    Raises:
        ConfigurationError: SUPABASE_URL is no address, or stands there without a key or a bucket.
    """
    if settings.supabase_url:
        return _supabase(settings)
    secret = settings.jwt_secret_key.get_secret_value()
    return LocalStore(settings.home / "objects", secret, public_url=settings.public_url, clock=clock)


def _supabase(settings: Settings) -> ObjectStore:
    key = settings.supabase_key.get_secret_value()
    if not settings.supabase_url.startswith(("https://", "http://")):
        raise ConfigurationError("SUPABASE_URL: expected the project's address, such as https://abcdefgh.supabase.co")
    if not key or not settings.supabase_bucket:
        raise ConfigurationError("SUPABASE_URL is set, so SUPABASE_SERVICE_ROLE_KEY and SUPABASE_BUCKET_NAME must be, too")
    from gridx.storage.supabase import SupabaseStore  # heavy: the SDK takes half a second, which a server with local files need not spend

    return SupabaseStore(settings.supabase_url, key, settings.supabase_bucket)
