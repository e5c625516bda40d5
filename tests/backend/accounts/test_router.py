"""The /auth routes as a client sees them."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from gridx.accounts import service
from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.core.tokens import issue_jwt
from gridx.ledger.transfers import hold
from tests.backend.conftest import SECRET, FakeClock, Person

LogIn = Callable[..., Person]
ADA = {"email": "ada@example.com", "password": "correct horse", "role": "buyer"}


def register(api: TestClient, **changes: Any) -> Any:
    return api.post("/auth/register", json=ADA | changes)


class TestRegister:
    def test_answers_the_user_with_the_welcome_credits(self, api: TestClient) -> None:
        answer = register(api)
        assert answer.status_code == 201
        assert answer.json() == {"id": 1, "email": "ada@example.com", "role": "buyer", "credits": 100}

    @pytest.mark.parametrize("email", ["ada@example.com", " ADA@Example.COM "])
    def test_a_taken_address_is_refused_in_any_spelling(self, api: TestClient, email: str) -> None:
        register(api)
        answer = register(api, email=email, password="another password")
        assert (answer.status_code, answer.json()["code"]) == (409, "email_taken")

    @pytest.mark.parametrize("email", ["ada@cluster.local", "ada@localhost", "ada@x.test", "ada+tag@sub.example.org"])
    def test_addresses_of_private_networks_are_taken(self, api: TestClient, email: str) -> None:
        assert register(api, email=email).status_code == 201

    @pytest.mark.parametrize("email", ["", "ada", "@example.com", "a@b@c", "ada@exa\0mple.com", "a" * 400 + "@x.org", 5, None])
    def test_what_is_no_address_is_malformed(self, api: TestClient, email: Any) -> None:
        answer = register(api, email=email)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith("email: ")

    @pytest.mark.parametrize("password", ["short", "x" * 1025, "with a \0 in it", "\ud800 half a pair", "x" * 500_000, None, ["a"]])
    def test_unusable_passwords_are_malformed_and_not_repeated(self, api: TestClient, password: Any) -> None:
        import json

        body = json.dumps(ADA | {"password": password})
        answer = api.post("/auth/register", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith("password: ")
        assert "half a pair" not in answer.text
        assert "short" not in answer.text.replace("should be shorter", "").replace("too short", "")

    @pytest.mark.parametrize("password", ["12345678", "x" * 1024, "pässwörd 🔑", "x" * 100 + "a"])
    def test_every_password_within_the_limits_logs_in(self, api: TestClient, password: str) -> None:
        register(api, password=password)
        for given, status in ((password, 200), (password[:-1] + "!", 401)):
            assert api.post("/auth/login", json={"email": ADA["email"], "password": given}).status_code == status

    @pytest.mark.parametrize("role", ["admin", "", None, "BUYER"])
    def test_other_roles_are_malformed(self, api: TestClient, role: Any) -> None:
        assert register(api, role=role).status_code == 422

    def test_only_the_domains_that_are_listed_may_register(self, api: TestClient, settings: Settings) -> None:
        settings.registration = "uni.example, @lab.example"
        assert register(api, email="a@lab.example").status_code == 201
        for email in ("a@evil-lab.example", "a@lab.example.evil.org", "a@x.lab.example"):
            answer = register(api, email=email)
            assert (answer.status_code, answer.json()["code"]) == (403, "registration_closed")

    def test_an_invitation_registers_one(self, api: TestClient, settings: Settings, sqlite_database: Database, clock: FakeClock) -> None:
        settings.registration = "invite"
        assert register(api).status_code == 403
        with sqlite_database.write() as session:
            code = service.create_invite(session, email=None, now=clock.now())
        assert register(api, invite=code).status_code == 201
        answer = register(api, email="b@example.com", invite=code)
        assert (answer.status_code, answer.json()["code"]) == (403, "registration_closed")
        assert api.post("/auth/login", json={"email": "b@example.com", "password": ADA["password"]}).status_code == 401

    def test_an_invitation_for_one_address_is_for_that_only(
        self, api: TestClient, settings: Settings, sqlite_database: Database, clock: FakeClock
    ) -> None:
        settings.registration = "invite"
        with sqlite_database.write() as session:
            code = service.create_invite(session, email="eve@example.com", now=clock.now())
        assert register(api, invite=code).status_code == 403
        assert register(api, email="Eve@example.com", invite=code).status_code == 201


class TestLogin:
    def test_answers_token_and_user_and_sets_a_cookie(self, api: TestClient) -> None:
        register(api)
        answer = api.post("/auth/login", json={"email": "ADA@example.com", "password": ADA["password"]})
        assert answer.status_code == 200
        body = answer.json()
        assert body["token_type"] == "bearer"
        assert body["user"] == {"id": 1, "email": "ada@example.com", "role": "buyer", "credits": 100}
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("gridx_session=")
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Secure" not in cookie
        assert answer.headers["cache-control"] == "no-store"

    def test_the_cookie_is_secure_behind_https(self, api: TestClient, settings: Settings) -> None:
        settings.public_url = "https://gridx.example"
        register(api)
        assert "Secure" in api.post("/auth/login", json=ADA).headers["set-cookie"]

    def test_unknown_users_and_wrong_passwords_look_the_same(self, api: TestClient) -> None:
        register(api)
        wrong = api.post("/auth/login", json={"email": ADA["email"], "password": "x"})
        unknown = api.post("/auth/login", json={"email": "nobody@example.com", "password": "x"})
        assert wrong.status_code == unknown.status_code == 401
        assert (
            wrong.json()
            == unknown.json()
            == {
                "code": "wrong_credentials",
                "detail": "the e-mail address or the password is wrong",
            }
        )

    def test_after_ten_failures_the_address_has_to_wait(self, api: TestClient, clock: FakeClock) -> None:
        register(api)
        for _ in range(10):
            assert api.post("/auth/login", json=ADA | {"password": "wrong"}).status_code == 401
        answer = api.post("/auth/login", json=ADA)
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_attempts")
        assert int(answer.headers["retry-after"]) == 900
        clock.advance(901)
        assert api.post("/auth/login", json=ADA).status_code == 200

    def test_a_disabled_account_is_told_so_only_with_the_right_password(self, api: TestClient, sqlite_database: Database) -> None:
        register(api)
        with sqlite_database.write() as session:
            service.set_disabled(session, email="ada@example.com", is_disabled=True)
        assert api.post("/auth/login", json=ADA | {"password": "wrong"}).status_code == 401
        assert api.post("/auth/login", json=ADA).json()["code"] == "account_disabled"


class TestAuthentication:
    def test_without_any_login_the_words_say_what_to_send(self, api: TestClient) -> None:
        answer = api.get("/auth/me")
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
        assert "Authorization: Bearer" in answer.json()["detail"]
        assert answer.headers["www-authenticate"] == "Bearer"

    def test_by_bearer_token(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        assert api.get("/auth/me", headers=person.headers).json()["id"] == person.id

    def test_by_cookie(self, api: TestClient) -> None:
        register(api)
        api.post("/auth/login", json=ADA)
        assert api.get("/auth/me").json()["email"] == "ada@example.com"

    def test_a_bad_bearer_token_is_not_rescued_by_a_good_cookie(self, api: TestClient) -> None:
        register(api)
        api.post("/auth/login", json=ADA)
        assert api.get("/auth/me", headers={"Authorization": "Bearer x.y.z"}).status_code == 401

    @pytest.mark.parametrize(
        "claims", [{"subject": "999"}, {"subject": "1; --"}, {"subject": "1" * 30}, {"subject": "²"}, {"epoch": 7}, {"epoch": None}]
    )
    def test_tokens_of_nobody_or_another_epoch_are_refused(
        self, api: TestClient, log_in: LogIn, clock: FakeClock, claims: dict[str, Any]
    ) -> None:
        from datetime import timedelta

        person = log_in()
        subject = claims.get("subject", str(person.id))
        token = issue_jwt(SECRET, "gridx:user", subject, clock.now(), timedelta(hours=1), epoch=claims.get("epoch", 0))
        assert api.get("/auth/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401

    def test_an_expired_token_is_refused(self, api: TestClient, log_in: LogIn, clock: FakeClock) -> None:
        person = log_in()
        clock.advance(7 * 24 * 3600 + 1)
        answer = api.get("/auth/me", headers=person.headers)
        assert (answer.status_code, answer.json()["detail"]) == (401, "this session has expired; log in again")

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Sec-Fetch-Site": "same-origin"}, 204),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"}, 401),
            ({"Sec-Fetch-Site": "same-site"}, 401),
            ({"Origin": "http://testserver"}, 204),
            ({"Origin": "http://evil.example"}, 401),
            ({"Origin": "http://testserver.evil.example"}, 401),
            ({"Origin": "null"}, 401),
            ({}, 401),
        ],
    )
    def test_by_cookie_only_our_own_pages_may_change_something(self, api: TestClient, headers: dict[str, str], status: int) -> None:
        register(api)
        api.post("/auth/login", json=ADA)
        assert api.post("/auth/logout_all", headers=headers).status_code == status

    def test_the_public_url_counts_as_our_own_origin(self, api: TestClient, settings: Settings) -> None:
        register(api)
        api.post("/auth/login", json=ADA)
        settings.public_url = "https://gridx.example"
        assert api.post("/auth/logout_all", headers={"Origin": "https://gridx.example"}).status_code == 204


class TestLogout:
    def test_forgets_the_cookie(self, api: TestClient) -> None:
        register(api)
        api.post("/auth/login", json=ADA)
        assert api.post("/auth/logout", headers={"Origin": "http://testserver"}).status_code == 204
        assert api.get("/auth/me").status_code == 401

    def test_everywhere_ends_all_tokens(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        assert api.post("/auth/logout_all", headers=person.headers).status_code == 204
        answer = api.get("/auth/me", headers=person.headers)
        assert (answer.status_code, answer.json()["detail"]) == (401, "this session has ended; log in again")


class TestPassword:
    def test_sets_the_new_one_ends_other_sessions_and_answers_a_token(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        answer = api.post("/auth/password", headers=person.headers, json={"old": ADA["password"], "new": "battery staple"})
        assert answer.status_code == 200
        api.cookies.clear()
        assert api.get("/auth/me", headers=person.headers).status_code == 401
        fresh = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        assert api.get("/auth/me", headers=fresh).status_code == 200
        assert api.post("/auth/login", json=ADA).status_code == 401
        assert api.post("/auth/login", json=ADA | {"password": "battery staple"}).status_code == 200

    def test_with_a_wrong_old_one_nothing_changes(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        answer = api.post("/auth/password", headers=person.headers, json={"old": "wrong", "new": "battery staple"})
        assert answer.status_code == 401
        assert api.get("/auth/me", headers=person.headers).status_code == 200


class TestWallet:
    def test_shows_credits_and_what_is_held(self, api: TestClient, log_in: LogIn, sqlite_database: Database, clock: FakeClock) -> None:
        person = log_in()
        with sqlite_database.write() as session:
            hold(session, reference="job:1", wallet="wallet:1", escrow="escrow:1", amount=5, reason="job 1", now=clock.now())
        answer = api.get(f"/auth/wallet/{person.id}", headers=person.headers)
        assert answer.json() == {"user_id": person.id, "credits": 95, "held": 5, "role": "buyer"}

    @pytest.mark.parametrize("path", ["/auth/wallet/{}", "/auth/wallet/{}/transfers"])
    def test_somebody_elses_and_nobodys_look_the_same(self, api: TestClient, log_in: LogIn, path: str) -> None:
        person, other = log_in(), log_in("bob@example.com", "seller")
        answers = [api.get(path.format(user), headers=person.headers) for user in (other.id, 999)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].json() == answers[1].json()

    @pytest.mark.parametrize("user_id", ["0", "-1", str(2**53 + 1), "1" * 400, "x", "1.5"])
    def test_ids_out_of_range_are_malformed(self, api: TestClient, log_in: LogIn, user_id: str) -> None:
        assert api.get(f"/auth/wallet/{user_id}", headers=log_in().headers).status_code == 422

    def test_transfers_are_paged_newest_first(self, api: TestClient, log_in: LogIn, sqlite_database: Database, clock: FakeClock) -> None:
        person = log_in()
        with sqlite_database.write() as session:
            for number in range(3):
                service.grant(
                    session, email="ada@example.com", amount=10 + number, reason="fair share", reference=f"grant:{number}", now=clock.now()
                )
        url = f"/auth/wallet/{person.id}/transfers"
        first = api.get(url, params={"limit": 3}, headers=person.headers).json()
        assert [item["amount"] for item in first["items"]] == [12, 11, 10]
        assert first["items"][0]["reason"] == "fair share"
        assert first["items"][0]["created_at"] == "2030-01-01T12:00:00Z"
        second = api.get(url, params={"limit": 3, "before": first["next"]}, headers=person.headers).json()
        assert [item["reference"] for item in second["items"]] == ["welcome:1"]
        assert second["next"] is None
