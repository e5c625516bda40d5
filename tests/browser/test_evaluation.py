"""Held-out rows: asked for in the form, shown on the job's page; and a round's model that another job starts from. Two machines train."""

import io
import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.visitor import Visitor, axe, sideways
from tests.e2e.platform import AgentProcess

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(240)]

# Each round adds one to the only weight, and a weight of one is best: so the first round is, unless training starts elsewhere.
TRAINS = """
import torch
import gridx_task

if __name__ == "__main__":
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    gridx_task.load_global_model(model)
    with torch.no_grad():
        model.weight += 1
    gridx_task.report(epoch=1, loss=0.5, accuracy=0.625)
    torch.save(model.state_dict(), "model.pth")
"""
EVALUATES = (
    TRAINS
    + """
def evaluate(model_path, csv_path):
    weight = torch.load(model_path, weights_only=True)["weight"].item()
    return {"accuracy": 1 - abs(weight - 1) / 8, "loss": abs(weight - 1), "weight": weight}
"""
)
CSV = b"x,y\n" + b"".join(b"%d,%d\n" % (n, n % 2) for n in range(40))
LONG_MS = 90_000


@pytest.fixture
def buyer(agents: list[AgentProcess], visit: Callable[..., Visitor]) -> Visitor:
    return visit("buyer")


def choose(page: Page, button: str, name: str, content: bytes) -> None:
    file: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    with page.expect_file_chooser() as opening:
        page.get_by_role("button", name=button, exact=True).click()
    opening.value.set_files([file])


def completed(page: Page) -> None:
    expect(page.locator("main header").get_by_text("Completed", exact=True)).to_be_visible(timeout=LONG_MS)


def test_held_out_rows_show_the_best_round_and_the_next_job_starts_from_it(buyer: Visitor) -> None:
    buyer.open("/app/jobs/new", "New job")
    page = buyer.page
    page.get_by_label("Name").fill("Judged")
    choose(page, "Choose files", "train.py", TRAINS.encode())
    choose(page, "Choose a CSV", "rows.csv", CSV)
    expect(page.get_by_text("40 rows, ")).to_be_visible()
    page.get_by_label("Chunks", exact=True).fill("2")
    page.get_by_label("Rounds", exact=True).fill("2")
    page.get_by_role("heading", name="Rounds and evaluation").click()
    held_out = page.get_by_label("Rows held out, %")
    held_out.fill("60")
    buyer.button("Submit job").click()
    expect(held_out).to_be_focused()
    expect(page.get_by_text("A share in percent, from 0 to 50")).to_have_count(2)  # beside the field, and beside the button
    held_out.fill("20")
    expect(page.get_by_text("2 rounds × (2 chunks + 2 evaluations) × 1 credit")).to_be_visible()
    needs = page.get_by_role("list", name="What held-out rows need")
    expect(needs).to_contain_text("the script has none")
    buyer.button("Submit job").click()
    expect(page.get_by_text("The script has no top-level function evaluate(model_path, csv_path)")).to_be_visible()
    expect(held_out).to_have_attribute("aria-invalid", "true")
    choose(page, "Change script", "train.py", EVALUATES.encode())
    expect(needs).to_contain_text("it can score held-out rows")
    assert axe(page) == []
    assert sideways(page) == 0
    buyer.button("Submit job").click()

    expect(page.get_by_role("heading", name="Judged")).to_be_visible()
    completed(page)
    expect(page.get_by_text("round 1 was best on held-out rows, 100.0 %")).to_be_visible()
    chart = page.get_by_role("region", name="Accuracy")
    expect(chart.get_by_role("img", name="accuracy by round")).to_contain_text("best 1.000")
    numbers = chart.get_by_role("table")
    series = ["global model, held-out rows", "training, mean by rows", "ada", "bob"]
    expect(numbers.get_by_role("columnheader")).to_have_text(["Round", *series])
    expect(numbers.get_by_role("row", name="1", exact=False).nth(0)).to_contain_text("1.000 (best)0.625")
    expect(numbers.get_by_role("row").nth(2)).to_contain_text("0.8750.625")
    rounds = page.get_by_role("table", name="Merged rounds, newest first")
    expect(rounds.get_by_role("row").nth(1)).to_contain_text(re.compile(r"Round 2.*87\.5 %.*weight 2\.000.*ada, bob on 8 rows"))
    expect(rounds.get_by_role("row").nth(2)).to_contain_text(re.compile(r"Round 1.*best.*100\.0 %"))
    subtasks = page.get_by_role("table", name="Subtasks of round 2")
    expect(subtasks.get_by_role("row", name="Evaluation")).to_have_count(2)
    expect(page.get_by_role("region", name="Global model")).to_contain_text("on 8 rows that no agent saw")
    expect(page.get_by_role("region", name="Contributions").get_by_role("row")).to_have_count(3)
    files = page.get_by_role("region", name="Files")
    expect(files.get_by_role("link", name="Best model, round 1")).to_be_visible()
    assert axe(page) == []
    assert sideways(page) == 0

    rounds.get_by_role("link", name="Train on from round 1").click()
    expect(page.get_by_role("heading", name=re.compile(r"^Train job \d+ on$"))).to_be_visible()
    expect(page.get_by_text("20 % of the rows held out, from job")).to_be_visible()
    page.get_by_label("Name").fill("Goes on")
    buyer.button("Submit job").click()
    expect(page.get_by_role("heading", name="Goes on")).to_be_visible()
    completed(page)
    expect(rounds.get_by_role("row").nth(2)).to_contain_text("weight 2.000")  # its round 1 began where the other's ended
    expect(page.get_by_role("region", name="Files").get_by_role("link", name="Initial model")).to_be_visible()

    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("row", name="Best round")).to_contain_text(re.compile(r"1, 87\.5 %1, 100\.0 %"))
    expect(page.get_by_role("img", name="accuracy of both jobs by round")).to_be_visible()
    assert axe(page) == []
    assert buyer.complaints == []


def test_a_model_file_is_where_training_starts(buyer: Visitor) -> None:
    weights = io.BytesIO()
    torch.save({"weight": torch.tensor([[4.0]])}, weights)
    first = buyer.user.submit(EVALUATES, CSV, title="Once", chunks=1)
    buyer.open(f"/app/jobs/new?from={first}", f"Run job {first} again")
    page = buyer.page
    page.get_by_label("Name").fill("From a file")
    page.get_by_role("heading", name="Rounds and evaluation").click()
    page.get_by_label("Rows held out, %").fill("10")
    page.get_by_role("radio", name="One provider").check()
    page.get_by_role("radio", name="A model file").focus()
    page.keyboard.press("Space")
    buyer.button("Submit job").click()
    expect(buyer.button("Choose a model file")).to_be_focused()
    choose(page, "Choose a model file", "mine.pth", weights.getvalue())
    expect(page.get_by_text("mine.pth")).to_be_visible()
    expect(page.get_by_text("1 round × (1 chunk + 1 evaluation) × 1 credit")).to_be_visible()
    buyer.button("Submit job").click()
    expect(page.get_by_role("heading", name="From a file")).to_be_visible()
    completed(page)
    expect(page.get_by_role("table", name="Merged rounds, newest first")).to_contain_text("weight 5.000")
    expect(page.get_by_role("region", name="Files").get_by_role("link", name="Initial model")).to_be_visible()
    assert buyer.complaints == []
