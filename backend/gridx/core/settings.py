"""Everything that can be set from outside, as one object built at start and passed in. `.env.example` lists it with its defaults."""

import os
import secrets
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from gridx.core.errors import ConfigurationError

_SAMPLE_SECRETS = {"change-me", "changeme", "secret", "your_secret_key", "your-secret-key", "dev", "test", "sample"}
_MIN_SECRET_CHARS = 32
_MAKE_ONE = 'python -c "import secrets; print(secrets.token_hex(32))"'


class Settings(BaseSettings):
    """Read from the environment and from `.env` in the working directory; the environment wins."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", populate_by_name=True)

    home: Path = Field(Path("./var"), validation_alias="GRIDX_HOME")
    environment: Literal["production", "development"] = Field("production", validation_alias="GRIDX_ENVIRONMENT")
    database_url: str = Field("", validation_alias="DATABASE_URL")
    jwt_secret_key: SecretStr = Field(SecretStr(""), validation_alias="JWT_SECRET_KEY")
    public_url: str = Field("", validation_alias="GRIDX_PUBLIC_URL")
    cors_origins: str = Field("", validation_alias="GRIDX_CORS_ORIGINS")
    registration: str = Field("open", validation_alias="GRIDX_REGISTRATION")
    dask_scheduler: str = Field("", validation_alias="GRIDX_DASK_SCHEDULER")
    log_level: str = Field("INFO", validation_alias="GRIDX_LOG_LEVEL")

    supabase_url: str = Field("", validation_alias="SUPABASE_URL")
    supabase_key: SecretStr = Field(SecretStr(""), validation_alias=AliasChoices("SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_KEY"))
    supabase_bucket: str = Field("gridx-files", validation_alias="SUPABASE_BUCKET_NAME")

    mnist_url: str = Field("https://ossci-datasets.s3.amazonaws.com/mnist", validation_alias="GRIDX_MNIST_URL")
    fashion_mnist_url: str = Field("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", validation_alias="GRIDX_FASHION_MNIST_URL")

    max_upload_bytes: int = Field(20 * 1024**3, validation_alias="GRIDX_MAX_UPLOAD_BYTES", ge=1)
    max_update_bytes: int = Field(2 * 1024**3, validation_alias="GRIDX_MAX_UPDATE_BYTES", ge=1)
    heartbeat_s: float = Field(10.0, validation_alias="GRIDX_HEARTBEAT_S", gt=0)
    poll_s: float = Field(1.0, validation_alias="GRIDX_POLL_S", gt=0)
    lease_s: float = Field(60.0, validation_alias="GRIDX_LEASE_S", gt=0)
    offline_after_s: float = Field(30.0, validation_alias="GRIDX_OFFLINE_AFTER_S", gt=0)
    sweep_s: float = Field(10.0, validation_alias="GRIDX_SWEEP_S", gt=0)
    session_hours: float = Field(24.0 * 7, validation_alias="GRIDX_SESSION_HOURS", gt=0)
    orchestrator_port: int = Field(50051, validation_alias="GRIDX_ORCHESTRATOR_PORT", ge=0, le=65535)
    orchestrator_tls_cert: Path | None = Field(None, validation_alias="GRIDX_ORCHESTRATOR_TLS_CERT")
    orchestrator_tls_key: Path | None = Field(None, validation_alias="GRIDX_ORCHESTRATOR_TLS_KEY")
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, validation_alias="GRIDX_WORKERS", ge=1)

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL for SQLAlchemy: SQLite under `home` by default, psycopg 3 for every spelling of PostgreSQL."""
        url = self.database_url or f"sqlite:///{self.home.resolve() / 'gridx.db'}"
        for prefix in ("postgres://", "postgresql://", "postgresql+psycopg2://"):
            if url.startswith(prefix):
                return "postgresql+psycopg://" + url[len(prefix) :]
        if not url.startswith(("sqlite:///", "postgresql+psycopg://")):
            raise ConfigurationError(f"DATABASE_URL: only sqlite:/// and postgresql:// are supported, not {url.split(':', 1)[0]!r}")
        return url

    @property
    def orchestrator_tls(self) -> tuple[Path, Path] | None:
        """Certificate chain and key of the orchestrator, None without TLS. Raises ConfigurationError when one of the two is missing."""
        certificate, key = self.orchestrator_tls_cert, self.orchestrator_tls_key
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            raise ConfigurationError("set both GRIDX_ORCHESTRATOR_TLS_CERT and GRIDX_ORCHESTRATOR_TLS_KEY, or neither")
        for path in (certificate, key):
            if not path.is_file():
                raise ConfigurationError(f"{path}, which the orchestrator of synchronous training needs for TLS, is no file")
        return certificate, key

    @property
    def registration_domains(self) -> list[str]:
        """E-mail domains that may register, lower case; empty unless GRIDX_REGISTRATION lists some."""
        if self.registration in ("open", "invite"):
            return []
        return [domain.strip().lower().lstrip("@") for domain in self.registration.split(",") if domain.strip()]

    @property
    def cors_origin_list(self) -> list[str]:
        return [origin.strip() for origin in self.cors_origins.split(",") if origin.strip()]


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment, with the signing secret made and kept in `home` when none is given.

    Raises:
        ConfigurationError: a value is malformed, or the secret is short or a sample outside development.
    """
    try:
        settings = Settings(**overrides)  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        raise ConfigurationError(f"settings: {error}") from None
    settings.home.mkdir(parents=True, exist_ok=True)
    secret = settings.jwt_secret_key.get_secret_value()
    if not secret:
        settings.jwt_secret_key = SecretStr(_kept_secret(settings.home / "jwt-secret"))
    elif settings.environment != "development":
        _check_secret(secret)
    return settings


def _check_secret(secret: str) -> None:
    is_sample = secret.lower() in _SAMPLE_SECRETS or "generate with" in secret.lower() or len(set(secret)) < 8
    if len(secret) < _MIN_SECRET_CHARS or is_sample:
        raise ConfigurationError(f"JWT_SECRET_KEY is a sample or shorter than {_MIN_SECRET_CHARS} characters. Make one with: {_MAKE_ONE}")


def _kept_secret(path: Path) -> str:
    """The secret in `path`, made when absent. Two processes that start together end with the same one."""
    if not path.exists():
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        temporary.touch(0o600)
        temporary.write_text(secrets.token_hex(32))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return _read_secret(path)


def _read_secret(path: Path) -> str:
    secret = path.read_text().strip()
    if len(secret) < _MIN_SECRET_CHARS:
        raise ConfigurationError(f"{path} holds no usable secret. Delete it and start again: everybody has to log in anew.")
    return secret
