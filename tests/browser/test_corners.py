"""Where one rarely comes: lists that go on, servers that fail, orders that no machine meets."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from gridx.agents.models import Agent
from tests.browser.scene import Scene
from tests.browser.visitor import PASSWORD, Visitor
from tests.e2e.platform import Platform

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]

SCRIPT = 'import torch\ntorch.save({}, "model.pth")\n'


class TestListsThatGoOn:
    def test_datasets(self, visit: Callable[..., Visitor]) -> None:
        buyer = visit("buyer")
        for number in range(52):
            assert buyer.user.call("POST", "/datasets", params={"name": f"table-{number}.csv"}, content=b"a,b\n1,2\n3,4\n").is_success
        buyer.open("/app/datasets", "Datasets")
        rows = buyer.page.get_by_role("table", name="Your datasets, newest first").get_by_role("row")
        expect(rows).to_have_count(51)
        buyer.button("Show older ones").click()
        expect(rows).to_have_count(53)
        buyer.open("/app/jobs/new", "New job")
        buyer.page.get_by_text("Or use one that you uploaded before (50 and more)").click()
        buyer.button("Show older ones").click()
        buyer.page.get_by_role("button", name="table-0.csv").click()
        expect(buyer.page.get_by_text("2 rows, 2 columns")).to_be_visible()

    def test_movements(self, visit: Callable[..., Visitor]) -> None:
        buyer = visit("buyer")
        for _ in range(20):
            job = buyer.user.submit(SCRIPT, b"a,b\n1,2\n3,4\n", chunks=1)
            assert buyer.user.call("POST", f"/jobs/{job}/cancel").is_success
        buyer.open("/app/wallet", "Wallet")
        table = buyer.page.get_by_role("table", name="Movements of your wallet")
        expect(table).not_to_contain_text("elcome")
        buyer.page.get_by_role("link", name="Older").click()
        expect(table).to_contain_text("elcome")
        buyer.page.get_by_role("link", name="Newest").click()
        expect(table).not_to_contain_text("elcome")
        expect(buyer.wallet).to_have_text("100")

    def test_tasks_and_machines(self, platform: Platform, visit: Callable[..., Visitor]) -> None:
        buyer, seller = visit("buyer"), visit("seller")
        scene = Scene.made(platform, buyer.user, seller.user, machines=2)
        first, second = (scene.job(title, rounds=10, chunks=2) for title in ("One", "Two"))
        for job in (first, second):
            scene.train(job, 10, 2, 1)
        page = seller.page
        seller.open("/app/machines", "Machines")
        rows = page.get_by_role("table", name="Tasks, newest first").get_by_role("row")
        expect(rows).to_have_count(16)
        seller.button("Show older").click()
        expect(rows).to_have_count(41)
        page.goto(f"/app/machines?job={first}")
        expect(page.get_by_role("heading", name=f"Tasks of job {first}")).to_be_in_viewport()
        expect(page.get_by_text("20 accepted, 0 not")).to_be_visible()
        page.get_by_role("link", name="All tasks").click()
        expect(page.get_by_text("40 accepted, 0 not")).to_be_visible()

        with scene.database.write() as session:
            known = session.scalars(select(Agent).where(Agent.id == scene.machines[0])).one()
            fields = {column.name: getattr(known, column.name) for column in Agent.__table__.columns}
            now = datetime.now(UTC)
            session.add_all(Agent(**fields | {"id": f"rack-{number:03}", "token_hash": None, "last_seen_at": now}) for number in range(120))
        buyer.open("/app/network", "Network")
        machines = buyer.page.get_by_role("table", name="Machines by name").get_by_role("row")
        expect(machines).to_have_count(101)
        buyer.button("Show more").click()
        expect(machines).to_have_count(123)
        assert buyer.complaints + seller.complaints == []


class TestOrder:
    def test_what_no_machine_has(self, platform: Platform, visit: Callable[..., Visitor]) -> None:
        buyer = visit("buyer")
        Scene.made(platform, buyer.user, visit("seller").user, machines=1)
        page = buyer.page
        buyer.open("/app/jobs/new", "New job")
        expect(page.get_by_text("could start at once.")).to_be_visible()
        page.get_by_text("Arguments, machines and more").click()
        page.get_by_label("Only machines with a GPU").check()
        expect(page.get_by_text("No machine online has what you ask for.")).to_be_visible()
        page.get_by_label("Keep every round's updates").check()
        page.get_by_label("Hyperparameters").fill("[1]")
        page.get_by_label("Command line").fill("--epochs 5")
        buyer.button("Submit job").click()
        expect(page.get_by_label("Hyperparameters")).to_have_accessible_description(re.compile("A JSON object"))


class TestTrouble:
    def test_a_part_of_the_app_that_cannot_be_fetched_is_fetched_again(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        visitor.open("/app/jobs", "Jobs")
        visitor.page.route("**/assets/WalletPage*.js", lambda route: route.abort())
        visitor.page.get_by_role("navigation").get_by_role("link", name="Network").click()
        expect(visitor.page.get_by_role("heading", name="Network")).to_be_visible()
        visitor.wallet.click()
        expect(visitor.page.get_by_role("heading", name="There is a newer version of this page")).to_be_visible()
        visitor.page.unroute_all()
        visitor.button("Load it again").click()
        expect(visitor.page.get_by_role("heading", name="Wallet")).to_be_visible()

    def test_an_answer_that_failed_is_asked_for_again(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        refusal = {"code": "unavailable", "detail": "the database cannot be reached; try again in a few seconds"}
        visitor.page.route("**/transfers*", lambda route: route.fulfill(status=503, json=refusal))
        visitor.open("/app/wallet", "Wallet")
        expect(visitor.page.get_by_role("alert")).to_contain_text("The database cannot be reached")
        visitor.page.unroute_all()
        visitor.button("Try again").click()
        expect(visitor.page.get_by_role("table", name="Movements of your wallet")).to_be_visible()

    def test_a_session_that_ends_can_be_left(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        visitor.open("/app/jobs", "Jobs")
        assert visitor.user.call("POST", "/auth/logout_all").is_success
        visitor.button("Leave this page").click()
        expect(visitor.page.get_by_role("heading", name="Log in")).to_be_visible()
        visitor.page.get_by_label("E-mail").fill(visitor.email)
        visitor.page.get_by_label("Password").fill(PASSWORD)
        visitor.button("Log in").click()
        expect(visitor.page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()


class TestGuide:
    def test_leads_from_part_to_part_and_to_the_api(self, visit: Callable[..., Visitor]) -> None:
        visitor = visit("buyer")
        page = visitor.page
        visitor.open("/app/guide", "Guide")
        expect(page).to_have_url(re.compile("/app/guide/contract$"))
        page.get_by_role("navigation", name="On this page").get_by_role("link").last.click()
        expect(page.locator("article h2").last).to_be_in_viewport()
        page.get_by_role("navigation", name="Parts of the guide").get_by_role("link").nth(1).click()
        expect(page).to_have_url(re.compile("/app/guide/providers$"))
        page.get_by_role("link", name="API reference").click()
        expect(page.get_by_text("/jobs/upload").first).to_be_visible()
        assert visitor.complaints == [], "the policy that forbids strangers' scripts holds on this page as well"
