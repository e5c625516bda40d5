"""Signed tokens: only what was issued here, for this audience, and has not run out."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from jose import jwt

from gridx.core.errors import NotAuthenticated
from gridx.core.tokens import hash_secret, issue_jwt, new_secret, read_jwt

SECRET = "0123456789abcdef" * 4
NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class TestReadJwt:
    def test_gives_back_the_claims(self) -> None:
        claims = read_jwt(SECRET, "gridx:user", issue_jwt(SECRET, "gridx:user", "7", NOW, HOUR, epoch=3), NOW)
        assert (claims["sub"], claims["epoch"]) == ("7", 3)

    def test_ends_to_the_second(self) -> None:
        token = issue_jwt(SECRET, "gridx:user", "7", NOW, HOUR)
        read_jwt(SECRET, "gridx:user", token, NOW + HOUR - timedelta(seconds=1))
        with pytest.raises(NotAuthenticated, match="expired"):
            read_jwt(SECRET, "gridx:user", token, NOW + HOUR)

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "a.b.c",
            "a" * 5000,
            "ä.ö.ü",
            jwt.encode({"sub": "7", "aud": "gridx:user", "exp": 9e9}, "another secret", algorithm="HS256"),
            jwt.encode({"sub": "7", "aud": "gridx:agent", "exp": 9e9}, SECRET, algorithm="HS256"),
            jwt.encode({"sub": "7", "aud": "gridx:user"}, SECRET, algorithm="HS256"),
            jwt.encode({"aud": "gridx:user", "exp": 9e9}, SECRET, algorithm="HS256"),
            jwt.encode({"sub": "7", "exp": 9e9}, SECRET, algorithm="HS256"),
            jwt.encode({"sub": "7", "aud": "gridx:user", "exp": 9e9}, SECRET, algorithm="HS512"),
            f"{part({'alg': 'none', 'typ': 'JWT'})}.{part({'sub': '7', 'aud': 'gridx:user', 'exp': 9e9})}.",
            base64.urlsafe_b64encode(b"[" * 2900).decode() + ".e30.x",
        ],
    )
    def test_everything_else_is_refused_in_the_same_way(self, token: str) -> None:
        with pytest.raises(NotAuthenticated):
            read_jwt(SECRET, "gridx:user", token, NOW)


class TestNewSecret:
    def test_is_never_the_same_and_says_what_it_is(self) -> None:
        secrets = {new_secret("gxk") for _ in range(100)}
        assert len(secrets) == 100
        assert all(secret.startswith("gxk_") for secret in secrets)

    def test_only_its_hash_is_needed_to_know_it_again(self) -> None:
        secret = new_secret("gxk")
        assert hash_secret(secret) == hash_secret(secret)
        assert len(hash_secret(secret)) == 64
        assert hash_secret(secret) != hash_secret(secret + " ")
