"""How a job learns and how its rows are dealt: chosen in the form, shown on the job's page, carried over to the next job, compared."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Page, Request, expect

from tests.browser.visitor import Visitor, axe, sideways

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]

SCRIPT = b"import torch\ntorch.save(torch.nn.Linear(2, 1).state_dict(), 'model.pth')\n"
CSV = b"petal,species\n" + b"".join(b"%d,%s\n" % (n, b"ab"[n % 2 : n % 2 + 1]) for n in range(40))


def choose(page: Page, *files: tuple[str, bytes]) -> None:
    with page.expect_file_chooser() as opening:
        page.get_by_role("button", name="Choose files", exact=True).click()
    chosen: list[FilePayload] = [{"name": name, "mimeType": "application/octet-stream", "buffer": content} for name, content in files]
    opening.value.set_files(chosen)


def open_fold(page: Page, title: str) -> None:
    page.get_by_role("heading", name=title).click()


def test_a_strategy_and_a_deal_are_sent_shown_and_carried_over(visit: Callable[..., Visitor]) -> None:
    buyer = visit("buyer")
    buyer.open("/app/jobs/new", "New job")
    page = buyer.page
    page.get_by_label("Name").fill("Steady")
    choose(page, ("train.py", SCRIPT), ("flowers.csv", CSV))
    expect(page.get_by_text("40 rows, ")).to_be_visible()

    open_fold(page, "How it learns")
    page.get_by_role("radio", name="Krum", exact=True).check()
    page.get_by_label("Chunks", exact=True).fill("4")
    expect(page.get_by_text("With this, Krum needs 5 chunks or more; the job has 4")).to_be_visible()
    page.get_by_label("Chunks", exact=True).fill("5")
    expect(page.get_by_text("Krum needs 5 chunks or more; the job has 5")).to_be_visible()
    page.get_by_role("radio", name="FedAvgM").check()
    page.get_by_label("Momentum").fill("0.5")
    open_fold(page, "How rows are dealt")
    page.get_by_role("radio", name="In the file's order").check()
    expect(page.get_by_text("If the file is sorted, each chunk sees only a part of what there is")).to_be_visible()
    page.get_by_role("radio", name="Stratified").check()
    open_fold(page, "How rows are dealt")
    buyer.button("Submit job").click()
    expect(page.get_by_label("Column")).to_be_focused()  # its section opens for it
    assert axe(page) == []
    assert sideways(page) == 0
    page.get_by_label("Column").select_option("species")

    def is_order(request: Request) -> bool:
        return request.method == "POST" and request.url.endswith("/jobs")

    with page.expect_request(is_order) as sending:
        buyer.button("Submit job").click()
    order = json.loads(sending.value.post_data or "")
    assert (order["strategy"], order["strategy_options"]) == ("fedavgm", {"momentum": 0.5})
    assert (order["partitioner"], order["partitioner_options"]) == ("stratified", {"column": "species"})

    expect(page.get_by_role("heading", name="Steady")).to_be_visible()
    facts = page.get_by_role("region", name="Order")
    expect(facts).to_contain_text("FedAvgM: server_lr 1, momentum 0.5")
    expect(facts).to_contain_text("Stratified by species")

    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_text("FedAvgM: momentum 0.5")).to_be_visible()
    expect(page.get_by_text("Stratified by species")).to_be_visible()

    steady = buyer.user.call("GET", f"/jobs/list/{buyer.user.id}").json()[0]["id"]
    plain = buyer.user.submit(SCRIPT.decode(), CSV, chunks=5)
    buyer.open(f"/app/jobs/compare?a={steady}&b={plain}", "Compare two jobs")
    table = page.get_by_role("table", name="The two jobs side by side")
    expect(table.get_by_role("row", name="Learns by differs")).to_contain_text("momentum 0.5FedAvg")
    expect(table.get_by_role("row", name="Rows dealt differs")).to_contain_text("Stratified by speciesAt random")
    expect(table.get_by_role("row", name="Chunks")).not_to_contain_text("differs")
    assert axe(page) == []
    assert buyer.complaints == []
