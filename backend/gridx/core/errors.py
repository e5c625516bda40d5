"""The one shape of an error: a status, a stable code, words that say what to do. Domains subclass it beside the service that raises it."""

from collections.abc import Mapping
from types import MappingProxyType


class GridxError(Exception):
    """An error that the caller is told about as `{"code", "detail"}`."""

    status = 400
    code = "bad_request"
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class ConfigurationError(GridxError):
    """The server's own settings are unusable; said at start, not to a user."""

    status = 500
    code = "configuration"


class NotFound(GridxError):
    """No such thing, or it belongs to somebody else: the two look the same, so that ids cannot be probed."""

    status = 404
    code = "not_found"


class NotAuthenticated(GridxError):
    status = 401
    code = "not_authenticated"
    headers: Mapping[str, str] = MappingProxyType({"WWW-Authenticate": "Bearer"})


class Forbidden(GridxError):
    status = 403
    code = "forbidden"


class Invalid(GridxError):
    """A request that is malformed; the detail names each wrong field."""

    status = 422
    code = "invalid"


class TooLarge(GridxError):
    status = 413
    code = "too_large"


class Unavailable(GridxError):
    """Database or storage is down. The caller may try again."""

    status = 503
    code = "unavailable"
    headers: Mapping[str, str] = MappingProxyType({"Retry-After": "5"})


class TooManyAttempts(GridxError):
    status = 429
    code = "too_many_attempts"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.headers = {"Retry-After": str(retry_after_s)}
