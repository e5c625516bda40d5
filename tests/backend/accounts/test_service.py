"""Accounts on a real database of each kind: races, throttling, administration."""

from functools import partial
from typing import Any

import pytest
from pydantic import SecretStr

from gridx.accounts import service, throttle
from gridx.accounts.models import LoginFailure
from gridx.accounts.passwords import hash_password, verify_password
from gridx.core.db import Database
from gridx.core.errors import GridxError, NotFound, TooManyAttempts
from gridx.core.settings import Settings
from gridx.ledger.check import check
from gridx.ledger.transfers import ReferenceTaken
from tests.backend.conftest import FakeClock
from tests.backend.racing import in_threads

PASSWORD = SecretStr("correct horse")


@pytest.fixture
def ada(database: Database, clock: FakeClock) -> service.Actor:
    with database.write() as session:
        user = service.add_user(session, email="ada@example.com", password_hash=hash_password(PASSWORD), role="both", now=clock.now())
        return service.actor_of(user)


class TestAddUser:
    def test_of_many_at_once_with_one_address_one_is_made(self, database: Database, clock: FakeClock) -> None:
        def work(_: int) -> int:
            with database.write() as session:
                return service.add_user(session, email="a@x.org", password_hash="h", role="buyer", now=clock.now()).id

        results = in_threads([partial(work, number) for number in range(6)])
        assert sum(isinstance(result, int) for result in results) == 1
        assert sum(isinstance(result, service.EmailTaken) for result in results) == 5
        with database.read() as session:
            assert check(session) == []

    def test_many_different_ones_at_once_each_get_their_welcome(self, database: Database, clock: FakeClock) -> None:
        def work(number: int) -> int:
            with database.write() as session:
                user = service.add_user(session, email=f"{number}@x.org", password_hash="h", role="buyer", now=clock.now())
                return service.credits_of(session, user.id)

        assert in_threads([partial(work, number) for number in range(6)]) == [100] * 6


class TestRegister:
    def test_one_invitation_used_by_many_at_once_registers_one(self, database: Database, settings: Settings, clock: FakeClock) -> None:
        settings.registration = "invite"
        with database.write() as session:
            code = service.create_invite(session, email=None, now=clock.now())

        def work(number: int) -> int:
            with database.write() as session:
                return service.register(
                    session, settings, email=f"{number}@x.org", password_hash="h", role="buyer", invite=code, now=clock.now()
                ).id

        results = in_threads([partial(work, number) for number in range(5)])
        assert sum(isinstance(result, int) for result in results) == 1
        assert sum(isinstance(result, service.RegistrationClosed) for result in results) == 4


class TestLogIn:
    def test_the_right_password_is_the_user(self, database: Database, ada: service.Actor, clock: FakeClock) -> None:
        user = service.log_in(database, email=ada.email, password=PASSWORD, ip="1.2.3.4", now=clock.now())
        assert service.actor_of(user) == ada

    def test_guesses_made_at_the_same_moment_do_not_pass_the_limit(self, database: Database, ada: service.Actor, clock: FakeClock) -> None:
        def work(_: int) -> Any:
            return service.log_in(database, email=ada.email, password=SecretStr("wrong"), ip="1.2.3.4", now=clock.now())

        results = in_threads([partial(work, number) for number in range(14)])
        assert sum(isinstance(result, service.WrongCredentials) for result in results) == throttle.MOST_PER_EMAIL
        assert sum(isinstance(result, TooManyAttempts) for result in results) == 4

    def test_success_starts_the_address_anew(self, database: Database, ada: service.Actor, clock: FakeClock) -> None:
        for _ in range(3):
            for _ in range(9):
                with pytest.raises(service.WrongCredentials):
                    service.log_in(database, email=ada.email, password=SecretStr("wrong"), ip="1.2.3.4", now=clock.now())
            service.log_in(database, email=ada.email, password=PASSWORD, ip="1.2.3.4", now=clock.now())


class TestThrottle:
    def attempt(self, database: Database, email: str, ip: str, clock: FakeClock) -> None:
        with database.write() as session:
            throttle.count_attempt(session, email=email, ip=ip, now=clock.now())

    def test_one_place_trying_many_addresses_has_to_wait(self, database: Database, clock: FakeClock) -> None:
        for number in range(throttle.MOST_PER_IP):
            self.attempt(database, f"{number}@x.org", "1.2.3.4", clock)
        with pytest.raises(TooManyAttempts, match="15 minutes"):
            self.attempt(database, "other@x.org", "1.2.3.4", clock)
        self.attempt(database, "other@x.org", "1.2.3.5", clock)

    def test_one_ipv6_network_is_one_place(self, database: Database, clock: FakeClock) -> None:
        for number in range(throttle.MOST_PER_IP):
            self.attempt(database, f"{number}@x.org", f"2001:db8:1:1::{number:x}", clock)
        with pytest.raises(TooManyAttempts):
            self.attempt(database, "other@x.org", "2001:db8:1:1:ffff::1", clock)
        self.attempt(database, "other@x.org", "2001:db8:1:2::1", clock)

    def test_sweeping_forgets_only_windows_that_ended(self, database: Database, clock: FakeClock) -> None:
        self.attempt(database, "old@x.org", "1.1.1.1", clock)
        clock.advance(600)
        self.attempt(database, "new@x.org", "2.2.2.2", clock)
        clock.advance(400)
        with database.write() as session:
            throttle.sweep_login_failures(session, clock.now())
            assert session.query(LoginFailure).count() == 2


class TestAdministration:
    def test_a_grant_is_made_once_per_reference(self, database: Database, ada: service.Actor, clock: FakeClock) -> None:
        with database.write() as session:
            values: dict[str, Any] = {"email": ada.email, "reason": "share", "reference": "grant:1", "now": clock.now()}
            assert service.grant(session, amount=50, **values) is True
            assert service.grant(session, amount=50, **values) is False
            with pytest.raises(ReferenceTaken):
                service.grant(session, amount=60, **values)
            assert service.credits_of(session, ada.id) == 150

    def test_nobody_is_said_to_be_nobody(self, database: Database, clock: FakeClock) -> None:
        with pytest.raises(NotFound, match="nobody is registered"), database.write() as session:
            service.grant(session, email="x@y.org", amount=1, reason="", reference="g", now=clock.now())

    def test_a_reset_ends_sessions_and_sets_the_password(
        self, database: Database, ada: service.Actor, settings: Settings, clock: FakeClock
    ) -> None:
        user = service.log_in(database, email=ada.email, password=PASSWORD, ip="1.2.3.4", now=clock.now())
        token = service.issue_token(settings, user, clock.now())
        secret = settings.jwt_secret_key.get_secret_value()
        with database.write() as session:
            assert service.authenticate(session, secret, token, clock.now()) == ada
            service.reset_password(session, email=ada.email, password_hash=hash_password(SecretStr("new password")))
        with database.read() as session, pytest.raises(GridxError, match="session has ended"):
            service.authenticate(session, secret, token, clock.now())
        service.log_in(database, email=ada.email, password=SecretStr("new password"), ip="1.2.3.4", now=clock.now())

    def test_disabling_ends_sessions_and_enabling_does_not_bring_them_back(
        self, database: Database, ada: service.Actor, settings: Settings, clock: FakeClock
    ) -> None:
        user = service.log_in(database, email=ada.email, password=PASSWORD, ip="1.2.3.4", now=clock.now())
        token, secret = service.issue_token(settings, user, clock.now()), settings.jwt_secret_key.get_secret_value()
        for is_disabled in (True, False):
            with database.write() as session:
                assert service.set_disabled(session, email=ada.email, is_disabled=is_disabled).is_disabled is is_disabled
            with database.read() as session, pytest.raises(GridxError, match="session has ended"):
                service.authenticate(session, secret, token, clock.now())


class TestVerifyPassword:
    def test_without_a_hash_nothing_is_right(self) -> None:
        assert verify_password(SecretStr("nobody has this password"), None) is False

    def test_everything_past_72_bytes_counts(self) -> None:
        hashed = hash_password(SecretStr("x" * 100 + "a"))
        assert verify_password(SecretStr("x" * 100 + "a"), hashed) is True
        assert verify_password(SecretStr("x" * 100 + "b"), hashed) is False
