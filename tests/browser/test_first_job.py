"""The first hour of a buyer and a seller, in two browsers: from registering to a model on the disk and credits in both wallets."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.visitor import PASSWORD
from tests.e2e.platform import BIN, Platform

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(240)]

ROUNDS, CHUNKS = 2, 2  # the example's 5 and 3, made smaller: one machine trains all of it
JOB_TAKES_MS = 150_000


@pytest.fixture
def own_browser(new_context: Callable[..., BrowserContext]) -> Callable[[], Page]:
    return lambda: new_context().new_page()


def register(page: Page, email: str, role: str) -> None:
    page.goto("/")
    page.get_by_role("link", name={"buyer": "Train a model", "seller": "Lend a machine"}[role]).click()
    expect(page.get_by_role("heading", name="Make an account")).to_be_visible()
    expect(page.get_by_role("radio", name=role.capitalize())).to_be_checked()
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make my account").click()
    expect(page.get_by_text("100 credits are in your wallet")).to_be_visible()


def wallet_shows(page: Page, credits: int) -> None:
    expect(page.get_by_role("link", name=re.compile("^Wallet.*credits"))).to_contain_text(f"{credits}credits")


def test_from_registering_to_a_model_and_credits_in_both_wallets(
    platform: Platform, own_browser: Callable[[], Page], tmp_path: Path
) -> None:
    seller, buyer = own_browser(), own_browser()

    register(seller, "seller@lab.example.org", "seller")
    expect(seller.get_by_role("heading", name="Lend your first machine")).to_be_visible()
    seller.get_by_role("link", name="Add a machine").click()
    seller.get_by_label("Name of the key").fill("Laboratory")
    seller.get_by_role("button", name="Make the key").click()
    command = seller.get_by_role("group", name="command", exact=True)
    expect(command).to_contain_text(f"{platform.url}/install.sh")
    key = re.search(r"gxk_[\w-]+", command.inner_text())
    assert key, command.inner_text()
    expect(seller.get_by_text("Waiting for it.")).to_be_visible()
    worker = [str(BIN / "gridx-worker"), "run", "--server", platform.url, "--key", key[0], "--name", "lab-pc-14"]
    worker += ["--sandbox", "process", "--python", sys.executable, "--state-dir", str(platform.home / "agent")]
    platform.run("lab-pc-14", worker)
    expect(seller.get_by_role("status").get_by_role("link", name="lab-pc-14")).to_be_visible(timeout=60_000)
    seller.get_by_role("button", name="Done").click()
    expect(seller.get_by_role("table", name="Your machines")).to_contain_text("Idle")

    register(buyer, "buyer@lab.example.org", "buyer")
    expect(buyer.get_by_role("heading", name="Train your first model")).to_be_visible()
    buyer.get_by_role("main").get_by_role("link", name="New job").first.click()
    buyer.get_by_role("button", name="Fill in the example").click()
    expect(buyer.get_by_text("569 rows, ")).to_be_visible()
    expect(buyer.get_by_text("1 machine could start at once.")).to_be_visible()
    buyer.get_by_label("Rounds", exact=True).fill(str(ROUNDS))
    buyer.get_by_label("Chunks", exact=True).fill(str(CHUNKS))
    expect(buyer.get_by_label("Price and machines")).to_contain_text(f"{ROUNDS * CHUNKS} credits at most")
    buyer.get_by_role("button", name="Submit job").click()

    expect(buyer.get_by_role("heading", name="Tumour classifier")).to_be_visible()
    expect(buyer.get_by_text("Training", exact=True).first).to_be_visible(timeout=60_000)
    wallet_shows(buyer, 100 - ROUNDS * CHUNKS)
    expect(buyer.get_by_role("link", name=re.compile("^Wallet.*held for jobs"))).to_be_visible()
    expect(buyer.get_by_role("img", name=re.compile(f"^[1-9] of {ROUNDS} rounds done"))).to_be_visible(timeout=JOB_TAKES_MS)
    buyer.get_by_role("button", name="by round").click()
    values = buyer.locator("figure table tbody tr")
    expect(values.first).to_be_visible()
    expect(buyer.get_by_text("Completed", exact=True).first).to_be_visible(timeout=JOB_TAKES_MS)
    expect(values).to_have_count(ROUNDS)  # the chart grew while one watched: nobody reloaded the page
    expect(buyer.get_by_role("img", name=f"{ROUNDS} of {ROUNDS} rounds done")).to_be_visible()
    expect(buyer.get_by_role("table", name=f"Subtasks of round {ROUNDS}")).to_contain_text("Verified")

    with buyer.expect_download() as starting:
        buyer.get_by_role("button", name="Download .pth").click()
    starting.value.save_as(tmp_path / "final_model.pth")
    model = torch.load(tmp_path / "final_model.pth", weights_only=True)
    assert {name: tuple(tensor.shape) for name, tensor in model.items()} == {
        "0.weight": (16, 30),
        "0.bias": (16,),
        "2.weight": (1, 16),
        "2.bias": (1,),
    }

    wallet_shows(buyer, 100 - ROUNDS * CHUNKS)
    wallet_shows(seller, 100 + ROUNDS * CHUNKS)
    expect(seller.get_by_role("table", name="Tasks, newest first").get_by_text("+1")).to_have_count(ROUNDS * CHUNKS)
    expect(seller.get_by_role("img", name="Credits that your machines earned, added up over time")).to_be_visible()
    buyer.get_by_role("link", name=re.compile("^Wallet")).first.click()
    expect(buyer.get_by_role("table", name="Movements of your wallet")).to_contain_text("Job 1")
    seller.get_by_role("link", name=re.compile("^Wallet")).first.click()
    expect(seller.get_by_role("table", name="Movements of your wallet").get_by_text("+1", exact=True)).to_have_count(ROUNDS * CHUNKS)
