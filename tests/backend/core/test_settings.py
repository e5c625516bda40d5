"""Settings as somebody who runs a server meets them."""

from pathlib import Path
from typing import Any

import pytest

from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings, load_settings
from tests.backend.racing import in_threads

GOOD_SECRET = "0123456789abcdef" * 4


def load(home: Path, **changes: Any) -> Settings:
    return load_settings(home=home, _env_file=None, **changes)


class TestSecret:
    def test_is_made_once_and_kept_for_its_owner_only(self, tmp_path: Path) -> None:
        first, second = (load(tmp_path).jwt_secret_key.get_secret_value() for _ in range(2))
        assert first == second
        assert len(first) >= 32
        assert (tmp_path / "jwt-secret").stat().st_mode & 0o077 == 0

    def test_processes_that_start_together_end_with_the_same_one(self, tmp_path: Path) -> None:
        secrets = in_threads([lambda: load(tmp_path).jwt_secret_key.get_secret_value()] * 8)
        assert len(set(secrets)) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["jwt-secret"]

    @pytest.mark.parametrize("secret", ["change-me", "short", "a" * 64, "your_secret_key"])
    def test_a_short_or_sample_one_is_refused_naming_the_command(self, tmp_path: Path, secret: str) -> None:
        with pytest.raises(ConfigurationError, match="token_hex"):
            load(tmp_path, jwt_secret_key=secret)

    def test_in_development_it_is_taken(self, tmp_path: Path) -> None:
        assert load(tmp_path, jwt_secret_key="dev", environment="development").jwt_secret_key.get_secret_value() == "dev"

    def test_a_damaged_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "jwt-secret").write_text("x")
        with pytest.raises(ConfigurationError, match="jwt-secret"):
            load(tmp_path)

    def test_is_never_shown(self, tmp_path: Path) -> None:
        assert GOOD_SECRET not in repr(load(tmp_path, jwt_secret_key=GOOD_SECRET))


class TestDatabaseUrl:
    @pytest.mark.parametrize("url", ["postgres://u:p@h/d", "postgresql://u:p@h/d", "postgresql+psycopg2://u:p@h/d"])
    def test_every_spelling_of_postgresql_becomes_psycopg_3(self, tmp_path: Path, url: str) -> None:
        assert load(tmp_path, database_url=url).sqlalchemy_url == "postgresql+psycopg://u:p@h/d"

    def test_is_a_file_under_home_by_default(self, tmp_path: Path) -> None:
        assert load(tmp_path).sqlalchemy_url == f"sqlite:///{tmp_path}/gridx.db"

    def test_another_database_is_refused_without_repeating_a_password(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="only sqlite") as caught:
            _ = load(tmp_path, database_url="mysql://u:swordfish@h/d").sqlalchemy_url
        assert "swordfish" not in str(caught.value)


class TestRegistrationDomains:
    @pytest.mark.parametrize(
        ("value", "domains"), [("open", []), ("invite", []), ("Uni.Example, @lab.example,", ["uni.example", "lab.example"])]
    )
    def test_are_listed_in_lower_case(self, tmp_path: Path, value: str, domains: list[str]) -> None:
        assert load(tmp_path, registration=value).registration_domains == domains
