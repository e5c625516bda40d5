"""The form for a new job: files by button, by drop and by keyboard, cuts and sessions that end meanwhile."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

from tests.browser.visitor import PASSWORD, Visitor, sideways

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]

SCRIPT = """import torch
import gridx_task
model = torch.nn.Linear(2, 1)
gridx_task.load_global_model(model)
gridx_task.report(epoch=1, loss=1.0, accuracy=0.5)
torch.save(model.state_dict(), "model.pth")
"""
MIB = 1024 * 1024


def a_file(name: str, content: str | bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content.encode() if isinstance(content, str) else content}


def choose(page: Page, button: str, *files: FilePayload) -> None:
    with page.expect_file_chooser() as opening:
        page.get_by_role("button", name=button, exact=True).click()
    opening.value.set_files(list(files))


@pytest.fixture
def buyer(visit: Callable[..., Visitor]) -> Visitor:
    made = visit("buyer")
    made.open("/app/jobs/new", "New job")
    return made


class TestData:
    def test_a_refused_csv_names_its_line(self, buyer: Visitor) -> None:
        choose(buyer.page, "Choose a CSV", a_file("torn.csv", "a,b\n1,2\n3,4,5\n6,7\n"))
        expect(buyer.page.get_by_role("alert")).to_contain_text("line 3")
        buyer.button("Choose another file").click()
        choose(buyer.page, "Choose a CSV", a_file("whole.csv", "a,b\n1,2\n3,4\n6,7\n"))
        expect(buyer.page.get_by_text("3 rows, 2 columns")).to_be_visible()
        assert buyer.complaints == []

    def test_an_upload_goes_on_after_a_cut(self, buyer: Visitor) -> None:
        rows = b"x,y\n" + b"12345678,1\n" * (10 * MIB // 11)
        cut, offsets = [True], list[str]()

        def network(route: Route) -> None:
            offset = route.request.headers["upload-offset"]
            offsets.append(offset)
            if cut[0] and offset != "0":
                route.abort("connectionreset")
            else:
                route.continue_()

        buyer.page.route("**/datasets/uploads/*", lambda route: network(route) if route.request.method == "PATCH" else route.continue_())
        choose(buyer.page, "Choose a CSV", a_file("large.csv", rows))
        expect(buyer.page.get_by_text("the connection was cut; it goes on by itself")).to_be_visible()
        cut[0] = False
        expect(buyer.page.get_by_text("rows, 2 columns")).to_be_visible(timeout=60_000)
        assert offsets.count("0") == 1, "what had arrived was not sent again"
        datasets = buyer.user.call("GET", "/datasets").json()["items"]
        assert [(item["rows"], item["bytes"]) for item in datasets] == [(10 * MIB // 11, len(rows))]

    def test_an_upload_can_be_paused_resumed_and_given_up(self, buyer: Visitor) -> None:
        held: list[Route] = []
        buyer.page.route(
            "**/datasets/uploads/*", lambda route: held.append(route) if route.request.method == "PATCH" else route.continue_()
        )
        choose(buyer.page, "Choose a CSV", a_file("slow.csv", "x,y\n1,2\n3,4\n"))
        buyer.button("Pause").click()
        expect(buyer.page.get_by_text("Paused at")).to_be_visible()
        buyer.button("Resume").click()
        expect(buyer.button("Pause")).to_be_visible()
        buyer.button("Cancel").click()
        expect(buyer.button("Choose a CSV")).to_be_visible()
        buyer.page.unroute_all()
        choose(buyer.page, "Choose a CSV", a_file("quick.csv", "x,y\n1,2\n3,4\n"))
        expect(buyer.page.get_by_text("2 rows, 2 columns")).to_be_visible()

    def test_a_dataset_is_kept_shown_used_again_and_deleted(self, buyer: Visitor) -> None:
        page = buyer.page
        choose(page, "Choose a CSV", a_file("petals.csv", 'length;name\n1,5;"a; b"\n2,5;ü\n'))
        expect(page.get_by_text("2 rows, 2 columns")).to_be_visible()
        page.reload()
        page.get_by_role("button", name="petals.csv").click()
        rows = page.get_by_role("region", name="First rows of the CSV")
        expect(rows.get_by_role("columnheader")).to_have_text(["length", "name"])
        expect(rows.get_by_role("row").nth(1).get_by_role("cell")).to_have_text(["1,5", "a; b"])
        buyer.button("Change data").click()
        expect(buyer.button("Choose a CSV")).to_be_visible()
        buyer.open("/app/datasets", "Datasets")
        buyer.page.get_by_text("2 columns").click()
        expect(page.get_by_text("length, name")).to_be_visible()
        page.get_by_role("button", name="Delete petals.csv").click()
        buyer.button("Keep it").click()
        page.get_by_role("button", name="Delete petals.csv").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="No datasets yet")).to_be_visible()
        assert buyer.complaints == []


class TestFiles:
    def test_dropped_all_at_once(self, buyer: Visitor) -> None:
        page = buyer.page
        files = [("iris.py", SCRIPT), ("requirements.txt", "numpy\npandas\n"), ("iris.csv", "a,b\n1,2\n3,4\n5,6\n"), ("notes.docx", "x")]
        transfer = page.evaluate_handle(
            """(files) => {
                const transfer = new DataTransfer();
                for (const [name, text] of files) transfer.items.add(new File([text], name));
                return transfer;
            }""",
            files,
        )
        page.dispatch_event("form", "dragover", {"dataTransfer": transfer})
        page.dispatch_event("form", "drop", {"dataTransfer": transfer})
        expect(page.get_by_label("Name")).to_have_value("iris")
        expect(page.get_by_text("2 packages")).to_be_visible()
        expect(page.get_by_text("3 rows, 2 columns")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("Notes.docx: Grid-X takes")
        expect(page.get_by_role("list", name="What the script does").get_by_role("listitem")).to_have_count(3)
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_text("No packages beyond")).to_be_visible()

    def test_a_notebook_becomes_a_script_and_its_magics_are_refused_by_cell(self, buyer: Visitor) -> None:
        def notebook(*cells: str) -> str:
            sources = ", ".join(f'{{"cell_type": "code", "source": ["{cell}"]}}' for cell in cells)
            return f'{{"nbformat": 4, "cells": [{sources}]}}'

        choose(buyer.page, "Choose files", a_file("magic.ipynb", notebook("import torch", "%pip install x")))
        expect(buyer.page.get_by_role("alert")).to_contain_text("ell 2")
        choose(buyer.page, "Choose files", a_file("plain.ipynb", notebook("import torch", "torch.save({}, 'model.pth')")))
        expect(buyer.page.get_by_text("plain.ipynb")).to_be_visible()
        choose(buyer.page, "Change script", a_file("other.py", SCRIPT))
        expect(buyer.page.get_by_text("other.py")).to_be_visible()
        choose(buyer.page, "Choose requirements.txt", a_file("requirements.txt", "numpy\n"))
        expect(buyer.page.get_by_text("requirements.txt 1 package")).to_be_visible()


class TestForm:
    def test_what_is_missing_is_marked_and_focused(self, buyer: Visitor) -> None:
        buyer.button("Submit job").click()
        expect(buyer.page.get_by_text("3 things are still missing; they are marked")).to_be_visible()
        expect(buyer.page.get_by_label("Name")).to_be_focused()
        assert sideways(buyer.page) == 0

    def test_a_session_that_ends_keeps_what_was_filled_in(self, buyer: Visitor) -> None:
        page = buyer.page
        page.get_by_label("Name").fill("Half a form")
        choose(page, "Choose files", a_file("train.py", SCRIPT))
        page.get_by_label("Rounds", exact=True).fill("7")
        assert buyer.user.call("POST", "/auth/logout_all").is_success
        dialog = page.get_by_role("dialog", name="Your session has ended")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_visible()
        dialog.get_by_label("Password").fill("not this one")
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog).to_contain_text("password")
        dialog.get_by_label("Password").fill(PASSWORD)
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog).to_be_hidden()
        expect(page.get_by_label("Name")).to_have_value("Half a form")
        expect(page.get_by_label("Rounds", exact=True)).to_have_value("7")
        choose(page, "Choose a CSV", a_file("rows.csv", "a,b\n" + "1,2\n" * 20))
        expect(page.get_by_text("20 rows, ")).to_be_visible()
        buyer.button("Submit job").click()
        expect(page.get_by_role("heading", name="Half a form")).to_be_visible()

    def test_too_few_credits(self, buyer: Visitor) -> None:
        buyer.page.get_by_label("Rounds", exact=True).fill("50")
        expect(buyer.page.get_by_text("150 credits short.")).to_be_visible()

    def test_a_refusal_of_the_server_stands_beside_its_field(self, buyer: Visitor) -> None:
        page = buyer.page
        page.get_by_label("Name").fill("Asks for what is not there")
        choose(page, "Choose files", a_file("train.py", SCRIPT), a_file("rows.csv", "a,b\n" + "1,2\n" * 20))
        choose(page, "Choose requirements.txt", a_file("requirements.txt", "--index-url https://example.org\n"))
        expect(page.get_by_text("20 rows, ")).to_be_visible()
        buyer.button("Submit job").click()
        expect(page.get_by_text(re.compile("line 1|index-url", re.IGNORECASE)).first).to_be_visible()


def test_from_registering_to_a_job_with_the_keyboard_alone(page: Page) -> None:
    def tab_to(name: str, role: str = "") -> None:
        """Tab until the control of that name has the focus."""
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(
                """([name, role]) => {
                    const it = document.activeElement;
                    const words = it.getAttribute("aria-label") ?? it.labels?.[0]?.innerText ?? it.innerText ?? "";
                    return words.trim().startsWith(name) && (!role || it.matches(role));
                }""",
                [name, role],
            ):
                return
        raise AssertionError(f"the Tab key does not reach {name!r}")

    page.goto("/")
    tab_to("Train a model")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Make an account")).to_be_visible()
    tab_to("Buyer", "input")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Both")).to_be_checked()
    tab_to("E-mail")
    page.keyboard.type("keys@lab.example.org")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Train your first model")).to_be_visible()

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to("New job", "main a")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New job", level=1)).to_be_visible()
    tab_to("Fill in the example")
    page.keyboard.press("Space")
    expect(page.get_by_text("569 rows, ")).to_be_visible()
    tab_to("Rounds")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2")
    tab_to("Submit job")
    expect(page.get_by_label("Price and machines")).to_contain_text("6 credits at most")
    page.keyboard.press("Space")
    expect(page.get_by_role("heading", name="Tumour classifier")).to_be_visible()
    expect(page.get_by_text("Waiting for a machine", exact=True).first).to_be_visible(timeout=60_000)
    tab_to("Cancel job")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel job")).to_be_focused()
    page.keyboard.press("Enter")
    tab_to("Cancel job", "dialog button")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()
