"""Jobs in the browser that do not end well, or are looked at again later. Two machines train for all tests of this file."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.e2e.platform import AgentProcess, Platform

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(240)]

CSV = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n % 2) for n in range(40))
QUICK = """
import torch
import gridx_task
model = torch.nn.Linear(2, 1)
gridx_task.load_global_model(model)
gridx_task.report(epoch=1, loss=0.5, accuracy=0.75)
torch.save(model.state_dict(), "model.pth")
"""
FAILS = """
import csv
print("before \\x1b[31mthe line\\x1b[0m that fails")
next(csv.DictReader(open("data.csv")))["no such column"]
# model.pth
"""
# Trains until the file GO lies in the folder that is named on its command line: the test decides when.
WAITS = """
import pathlib, sys, time
import torch
import gridx_task
model = torch.nn.Linear(2, 1)
go = pathlib.Path(sys.argv[1]) / "GO"
for epoch in range(100_000):
    gridx_task.report(epoch=epoch, loss=1.0 / (epoch + 1), accuracy=0.5)
    if go.exists():
        break
    time.sleep(0.1)
torch.save(model.state_dict(), "model.pth")
"""
LONG_MS = 90_000


@pytest.fixture
def buyer(agents: list[AgentProcess], visit: Callable[..., Visitor]) -> Visitor:
    return visit("buyer")


def state(page: Page, words: str) -> None:
    expect(page.get_by_role("banner").or_(page.locator("main header")).get_by_text(words, exact=True)).to_be_visible(timeout=LONG_MS)


def submit(buyer: Visitor, title: str, script: str, folder: Path, **options: Any) -> int:
    """Through the API: how the form submits is shown elsewhere."""
    return buyer.user.submit(script, CSV, title=title, arguments=f'["{folder}"]', chunks=options.pop("chunks", 1), **options)


def test_a_failing_script_says_why(buyer: Visitor, tmp_path: Path) -> None:
    job = submit(buyer, "Fails", FAILS, tmp_path)
    buyer.open(f"/app/jobs/{job}", "Fails")
    state(buyer.page, "Failed")
    failure = buyer.page.get_by_role("alert")
    expect(failure).to_contain_text("KeyError")
    expect(failure).to_contain_text("no such column")
    expect(buyer.page.get_by_role("group", name="Output of chunk 0, attempt 1")).to_contain_text("before the line that fails")
    expect(buyer.wallet).to_have_text(str(buyer.user.credits()))


def test_cancelling_brings_the_credits_back(buyer: Visitor, tmp_path: Path) -> None:
    job = submit(buyer, "Cancelled", WAITS, tmp_path, chunks=2, rounds=2)
    buyer.open(f"/app/jobs/{job}", "Cancelled")
    expect(buyer.wallet).to_have_text("96")
    state(buyer.page, "Training")
    buyer.button("Cancel job").click()
    buyer.button("Let it run").click()
    expect(buyer.page.get_by_role("dialog")).to_have_count(0)
    buyer.button("Cancel job").click()
    buyer.page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
    state(buyer.page, "Cancelled")
    expect(buyer.wallet).to_have_text("100")
    (tmp_path / "GO").touch()


def test_a_server_that_restarts_while_one_watches(buyer: Visitor, platform: Platform, agents: list[AgentProcess], tmp_path: Path) -> None:
    job = submit(buyer, "Outlives the server", WAITS, tmp_path, chunks=2)
    buyer.open(f"/app/jobs/{job}", "Outlives the server")
    state(buyer.page, "Training")
    assert platform.server is not None
    platform.server.terminate()
    banner = buyer.page.get_by_text("The server cannot be reached.")
    expect(banner).to_be_visible()
    platform.server.wait(30)
    expect(buyer.page.get_by_role("heading", name="Outlives the server")).to_be_visible()
    platform.start()
    expect(banner).to_be_hidden()
    (tmp_path / "GO").touch()
    state(buyer.page, "Completed")
    assert buyer.complaints == []


def test_a_finished_job_is_found_compared_run_again_and_deleted(buyer: Visitor, tmp_path: Path) -> None:
    first = submit(buyer, "First", QUICK, tmp_path, rounds=2)
    second = submit(buyer, "Second", QUICK, tmp_path, rounds=2, chunks=3, keep_updates="true")
    page = buyer.page
    buyer.open("/app/jobs", "Jobs")
    table = page.get_by_role("table", name="Your jobs, newest first")
    expect(page.get_by_role("button", name="Completed 2")).to_be_visible(timeout=LONG_MS)

    page.get_by_role("searchbox").fill("sec")
    expect(table.get_by_role("row")).to_have_count(2)  # the head, and one job
    expect(page).to_have_url(re.compile("q=sec"))
    page.get_by_role("button", name="Completed 2").click()
    expect(page).to_have_url(re.compile("state=COMPLETED"))
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.get_by_role("heading", name="No job is like that")).to_be_visible()
    page.reload()  # filters live in the address
    expect(page.get_by_role("heading", name="No job is like that")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="All 2").click()
    expect(table.get_by_role("row")).to_have_count(3)

    page.get_by_role("link", name="Second").click()
    expect(page.get_by_role("heading", name="Second")).to_be_visible()
    page.get_by_label("Show round").select_option("1")
    expect(page.get_by_role("table", name="Subtasks of round 1")).to_contain_text("Verified")
    page.reload()  # a deep link, with what is looked at
    expect(page).to_have_url(re.compile(rf"/app/jobs/{second}\?round=1$"))
    expect(page.get_by_role("table", name="Subtasks of round 1")).to_contain_text("Verified")
    for measure in ("Loss", "Accuracy"):
        page.get_by_role("button", name=measure, exact=True).click()
        for axis in ("epoch", "round"):
            page.get_by_role("button", name=f"by {axis}").click()
            expect(page.get_by_role("img", name=re.compile(f"^{measure.lower()} by {axis}"))).to_be_visible()
    page.get_by_label("Show the log of").select_option(index=1)
    expect(page.get_by_text("Nothing was printed yet.")).to_be_visible()
    files = page.get_by_role("region", name="Files").get_by_role("listitem")
    expect(files).to_have_count(8)
    page.get_by_role("button", name=re.compile(r"^Show \d+ more files$")).click()
    for kind, number in (("Final model", 1), ("Global model", 2), ("Update, round", 6), ("Script", 1)):
        expect(files.get_by_role("link", name=re.compile(rf"^{kind}(?! as)"))).to_have_count(number)
    page.get_by_role("button", name=re.compile("^Show .* earlier event")).click()
    expect(page.get_by_role("region", name="Timeline").get_by_role("listitem").last).to_contain_text("Submitted")
    page.get_by_text("What do delta and step mean?").click()
    expect(page.get_by_text("The convergence delta is the distance")).to_be_visible()
    with page.expect_download() as starting:
        page.get_by_role("link", name="Final model", exact=True).click()
    assert set(torch.load(io.BytesIO(Path(starting.value.path()).read_bytes()), weights_only=True)) == {"weight", "bias"}

    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare two jobs")).to_be_visible()
    expect(page.get_by_label("First job")).to_have_value(str(second))
    page.get_by_label("Second job").select_option(str(first))
    facts = page.get_by_role("table", name="The two jobs side by side")
    expect(facts.get_by_role("row", name="Rounds done")).to_contain_text(re.compile("2 of 2.*2 of 2"))
    expect(page.get_by_role("img", name="accuracy of both jobs by round")).to_be_visible()
    page.get_by_label("First job").select_option(str(first))
    expect(page.get_by_text("Choose two different jobs.")).to_be_visible()

    buyer.open(f"/app/jobs/{first}", "First")
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_role("heading", name=f"Run job {first} again")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("First")
    page.get_by_text("Show the script").click()
    expect(page.get_by_role("group", name="Source of the script")).to_contain_text("gridx_task.load_global_model(model)")
    page.get_by_label("Name").fill("First, again")
    page.get_by_label("Rounds", exact=True).fill("1")
    buyer.button("Submit job").click()
    expect(page.get_by_role("heading", name="First, again")).to_be_visible()
    state(page, "Completed")

    buyer.button("Delete").click()
    buyer.button("Keep it").click()
    buyer.button("Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("and its files are gone")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(3)
    assert buyer.complaints == []


def test_an_address_without_a_job_says_so(buyer: Visitor) -> None:
    for path in ("/app/jobs/999999", "/app/jobs/none", "/app/nowhere"):
        buyer.page.goto(path)
        expect(buyer.page.get_by_role("alert").or_(buyer.page.get_by_role("heading", name="There is no such page"))).to_be_visible()
