"""Training in step: asked for in the form, and its ranks on the job's page."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.scene import Scene
from tests.browser.visitor import Visitor, axe, sideways
from tests.e2e.platform import Platform

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]

SCRIPT = """import torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.save(torch.nn.Linear(2, 1).state_dict(), "model.pth")
dist.barrier()
"""


@pytest.fixture
def buyer(visit: Callable[..., Visitor]) -> Visitor:
    return visit("buyer")


def choose(page: Page, button: str, name: str, content: str) -> None:
    file: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content.encode()}
    with page.expect_file_chooser() as opening:
        page.get_by_role("button", name=button, exact=True).click()
    opening.value.set_files([file])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_shows_each_rank(platform: Platform, buyer: Visitor, visit: Callable[..., Visitor], theme: str) -> None:
    scene = Scene.made(platform, buyer.user, visit("seller").user, machines=3)
    job = scene.job("Together", "RUNNING", chunks=3, mode="ddp")
    scene.train_in_step(job, 3, 5)
    page = buyer.page
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    buyer.open(f"/app/jobs/{job}", "Together")
    header = page.locator("main header").first
    expect(header).to_contain_text("In step · 3 ranks")
    expect(page.get_by_text("Gang 2 trains in step: 3 of 3 ranks at work, at step 600.")).to_be_visible()
    card = page.get_by_role("region", name="Ranks")
    expect(card).to_contain_text("try 2, resumed from a checkpoint, 2 checkpoints sealed")
    expect(card).to_contain_text(re.compile(r"Try 1 was stopped: rank 1 \(.*\) was lost"))
    ranks = card.get_by_role("table", name="Ranks of the latest try")
    expect(ranks.get_by_role("columnheader")).to_have_text(["Rank", "Agent", "State", "Epoch", "Step", "Loss", "Samples/s", "Last heard"])
    expect(ranks.get_by_role("row")).to_have_count(4)
    first = ranks.get_by_role("row", name="Rank 0").get_by_role("cell")
    expect(first).to_have_text(["Rank 0", scene.machines[0], "Training", "5", "600", "0.833", "812.3", re.compile("just now|ago")])
    expect(ranks.get_by_role("row", name="Rank 2")).to_contain_text("silent, 5 min ago")
    chart = page.get_by_role("region", name="Accuracy")
    expect(chart.get_by_role("img", name="accuracy by epoch")).to_be_visible()
    expect(chart.get_by_role("columnheader")).to_have_text(
        ["Epoch", "mean of the ranks", *(f"rank {n}, {scene.machines[n]}" for n in range(3))]
    )
    expect(page.get_by_role("table", name="Subtasks of round 1")).to_have_count(0)
    expect(page.get_by_label("Show the log of")).to_contain_text(f"rank 2, {scene.machines[2]}")
    assert axe(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert sideways(page) == 0
    assert axe(page) == []
    assert buyer.complaints == []


def test_the_form_asks_for_it_and_repeats_it(buyer: Visitor) -> None:
    buyer.open("/app/jobs/new", "New job")
    page = buyer.page
    page.get_by_label("Name").fill("Together")
    choose(page, "Choose files", "train.py", SCRIPT)
    choose(page, "Choose a CSV", "rows.csv", "x,y\n1,2\n3,4\n5,6\n")
    expect(page.get_by_text("3 rows, 2 columns")).to_be_visible()
    page.get_by_role("radio", name="In step").check()
    ranks = page.get_by_label("Ranks", exact=True)
    ranks.fill("2")
    expect(page.get_by_text("2 ranks × 1 credit")).to_be_visible()
    expect(page.get_by_text("Joins the other ranks by torch.distributed")).to_be_visible()
    expect(page.get_by_label("Rounds", exact=True)).to_have_count(0)
    assert axe(page) == []
    buyer.button("Submit job").click()
    expect(page.get_by_role("heading", level=1, name="Together")).to_be_visible()
    expect(page.get_by_text("Waiting for the orchestrator of synchronous training")).to_be_visible()
    expect(page.get_by_role("region", name="Ranks")).to_contain_text("No try has begun yet")
    expect(page.get_by_role("region", name="Order")).to_contain_text("in step: one model, all ranks together")
    assert axe(page) == []
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_role("radio", name="In step")).to_be_checked()
    expect(ranks).to_have_value("2")
    assert buyer.complaints == []
