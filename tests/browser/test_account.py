"""Accounts, sessions, keys and machines: each button that takes something away, and that it asks first."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.scene import register_machine
from tests.browser.visitor import PASSWORD, Visitor

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]


def log_in(page: Page, email: str, password: str) -> None:
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


class TestRegister:
    def test_an_address_that_is_taken_is_said_beside_its_field(self, page: Page, visit: Callable[..., Visitor]) -> None:
        taken = visit("buyer").email
        page.goto("/app/register")
        page.get_by_role("radio", name="Both").check()
        page.get_by_label("E-mail").fill(taken)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Make my account").click()
        expect(page.get_by_label("E-mail")).to_have_accessible_description(re.compile("registered already"))
        page.get_by_role("link", name="Log in").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()  # both pages have fields of these names
        log_in(page, taken, "something else")
        expect(page.get_by_label("Password")).to_have_accessible_description(re.compile("password", re.IGNORECASE))
        log_in(page, taken, PASSWORD)
        expect(page.get_by_role("heading", name="Train your first model")).to_be_visible()


class TestSessions:
    def test_a_deep_link_asks_who_it_is_and_goes_on_there(self, page: Page, visit: Callable[..., Visitor]) -> None:
        email = visit("both").email
        page.goto("/app/network?state=idle")
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        log_in(page, email, PASSWORD)
        expect(page).to_have_url(re.compile(r"/app/network\?state=idle$"))

    def test_logging_out_ends_this_browser_alone(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        visitor.open("/app/account", "Account")
        visitor.button("Log out").click()
        expect(visitor.page.get_by_role("link", name="Train a model")).to_be_visible()
        visitor.page.goto("/app/jobs")
        expect(visitor.page.get_by_role("heading", name="Log in")).to_be_visible()
        assert visitor.user.call("GET", "/auth/me").status_code == 200

    def test_logging_out_everywhere_ends_all(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        visitor.open("/app/account", "Account")
        visitor.button("Log out everywhere").click()
        visitor.button("Stay").click()
        visitor.button("Log out everywhere").click()
        visitor.page.get_by_role("dialog").get_by_role("button", name="Log out everywhere").click()
        expect(visitor.page.get_by_role("link", name="Train a model")).to_be_visible()
        assert visitor.user.call("GET", "/auth/me").status_code == 401

    def test_a_new_password_ends_the_other_sessions_and_holds(
        self, visit: Callable[..., Visitor], new_context: Callable[..., BrowserContext]
    ) -> None:
        visitor = visit("buyer")
        visitor.open("/app/account", "Account")
        visitor.page.get_by_label("Password now").fill("wrong")
        visitor.page.get_by_label("New password").fill("battery staple")
        visitor.button("Change password").click()
        expect(visitor.page.get_by_label("Password now")).to_have_accessible_description(re.compile("password", re.IGNORECASE))
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)  # a wrong password ends no session
        visitor.page.get_by_label("Password now").fill(PASSWORD)
        visitor.button("Change password").click()
        expect(visitor.page.get_by_text("Your password is changed")).to_be_visible()
        visitor.button("Dismiss").click()
        expect(visitor.page.get_by_text("Your password is changed")).to_have_count(0)
        assert visitor.user.call("GET", "/auth/me").status_code == 401
        visitor.page.reload()
        expect(visitor.page.get_by_role("heading", name="Account")).to_be_visible()
        elsewhere = new_context().new_page()
        elsewhere.goto("/app/login")
        log_in(elsewhere, visitor.email, "battery staple")
        expect(elsewhere.get_by_role("heading", name="Train your first model")).to_be_visible()


class TestMachines:
    @pytest.fixture
    def seller(self, visit: Callable[..., Visitor]) -> Visitor:
        return visit("seller", permissions=["clipboard-read", "clipboard-write"])

    def test_a_key_is_copied_and_shown_this_once(self, seller: Visitor) -> None:
        page = seller.page
        seller.open("/app/machines", "Machines")
        expect(page.get_by_role("link", name="Read the provider guide")).to_be_visible()
        page.get_by_role("link", name="Add a machine").click()
        page.get_by_label("Name of the key").fill("Attic")
        seller.button("Make the key").click()
        page.get_by_role("button", name="Copy the key").click()
        copied: str = page.evaluate("() => navigator.clipboard.readText()")
        assert copied.startswith("gxk_")
        page.get_by_text("Without Docker, for your own code only").click()
        expect(page.get_by_role("group", name="command without Docker")).to_contain_text("--sandbox process")
        seller.button("Close").click()
        expect(page.get_by_text("Attic")).to_be_visible()
        page.reload()
        expect(page.get_by_text("Attic")).to_be_visible()
        assert copied not in page.content()

    def test_a_revoked_key_takes_its_machines_offline(self, seller: Visitor) -> None:
        register_machine(seller.user, "cellar-1", "Cellar")
        page = seller.page
        seller.open("/app/machines", "Machines")
        expect(page.get_by_role("table", name="Your machines")).to_contain_text("Idle")
        seller.button("Revoke Cellar").click()
        seller.button("Keep it").click()
        seller.button("Revoke Cellar").click()
        seller.button("Revoke the key").click()
        expect(page.get_by_text("The key is revoked")).to_be_visible()
        expect(page.get_by_role("table", name="Your machines")).to_contain_text("Offline")
        page.get_by_text("1 revoked key").click()
        expect(page.get_by_text("No key is valid.")).to_be_visible()

    def test_a_machine_is_removed_from_the_list_or_from_its_page(self, seller: Visitor) -> None:
        for name in ("attic-1", "attic-2"):
            register_machine(seller.user, name)
        page = seller.page
        seller.open("/app/machines", "Machines")
        seller.button("Remove attic-1").click()
        seller.button("Keep it").click()
        seller.button("Remove attic-1").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove attic-1").click()
        expect(page.get_by_text("attic-1 was removed")).to_be_visible()
        expect(page.get_by_role("link", name="attic-1")).to_have_count(0)
        page.get_by_role("link", name="attic-2").click()
        expect(page.get_by_role("heading", name="attic-2")).to_be_visible()
        seller.button("Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove attic-2").click()
        expect(page.get_by_role("heading", name="Lend your first machine")).to_be_visible()
        page.goto("/app/machines/attic-2")
        expect(page.get_by_role("heading", name="You have no machine of this name")).to_be_visible()

    def test_everybody_sees_machines_by_state(self, seller: Visitor, visit: Callable[..., Visitor]) -> None:
        register_machine(seller.user, "shown-1")
        other = visit("buyer")
        other.open("/app/network", "Network")
        filters = other.page.get_by_role("navigation", name="Machines by state")
        filters.get_by_role("link", name=re.compile("^Busy")).click()
        expect(other.page.get_by_text("No machine is in this state right now.")).to_be_visible()
        filters.get_by_role("link", name=re.compile("^Idle")).click()
        other.page.get_by_role("link", name="shown-1").click()
        expect(other.page.get_by_role("heading", name="shown-1")).to_be_visible()
        expect(other.page.get_by_text("not shown")).to_be_visible()


def test_pages_of_the_other_role_say_whom_they_are_for(visit: Callable[..., Visitor]) -> None:
    seller, buyer = visit("seller"), visit("buyer")
    for visitor, path, words in (
        (seller, "/app/jobs", "Jobs are for buyers"),
        (seller, "/app/jobs/new", "Jobs are for buyers"),
        (buyer, "/app/machines", "Your account buys training"),
    ):
        visitor.page.goto(path)
        expect(visitor.page.get_by_role("heading", name=words)).to_be_visible()
