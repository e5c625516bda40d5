"""A job without a script: a ready-made model, data of the server's or of one's own, and how rows would be dealt."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.test_new_job import a_file, choose
from tests.browser.visitor import Visitor, axe, sideways

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def buyer(visit: Callable[..., Visitor]) -> Visitor:
    made = visit("buyer")
    made.open("/app/jobs/new", "New job")
    return made


def test_a_model_on_the_servers_own_data_by_keyboard(buyer: Visitor) -> None:
    page = buyer.page
    page.get_by_label("Name").fill("No code at all")
    page.get_by_role("radio", name="Your own script").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="A ready-made model")).to_be_checked()
    page.get_by_role("radio", name="Neural network (MLP)").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Logistic regression")).to_be_checked()
    expect(page.get_by_label("Hidden layers")).to_have_count(0)
    page.get_by_label("Epochs").fill("0")
    page.get_by_role("radio", name="A table of your own").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Synthetic")).to_be_checked()
    buyer.button("Submit job").click()
    expect(page.get_by_text("A whole number from 1 to 1,000").first).to_be_visible()
    expect(page.get_by_label("Epochs")).to_be_focused()
    page.get_by_label("Epochs").fill("5")
    assert sideways(page) == 0
    buyer.button("Submit job").click()
    expect(page.get_by_role("heading", name="No code at all")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Logistic regression").first).to_be_visible()
    [job] = buyer.user.call("GET", f"/jobs/list/{buyer.user.id}").json()
    assert (job["recipe"], job["dataset_name"]) == ("logistic_regression", "synthetic")
    view = buyer.user.call("GET", f"/jobs/{job['id']}").json()
    assert view["hyperparameters"] == {"learning_rate": 0.001, "epochs": 5, "batch_size": 32}
    assert buyer.complaints == []


def test_a_sorted_table_cut_in_order_is_warned_of_and_the_cure_is_one_click_away(buyer: Visitor) -> None:
    page = buyer.page
    page.get_by_role("radio", name="A ready-made model").check()
    rows = "".join(f"{number},{'early' if number < 60 else 'late'}\n" for number in range(120))
    choose(page, "Choose a CSV", a_file("sorted.csv", "value,when\n" + rows))
    expect(page.get_by_text("120 rows, 2 columns")).to_be_visible()
    page.get_by_label("Column to predict").select_option("when")
    page.get_by_text("How rows are dealt").click()
    preview = page.get_by_role("region", name="What each chunk gets")
    expect(preview.get_by_role("img", name="Rows of 5 chunks by when")).to_be_visible()
    page.get_by_role("radio", name="In the file's order").check()
    expect(preview.get_by_role("status")).to_contain_text("The file is sorted by 'when'")
    preview.get_by_text("Numbers").click()
    assert axe(page) == []
    expect(preview.get_by_role("row").nth(1)).to_contain_text("24")
    buyer.button("Deal stratified by when").click()
    expect(page.get_by_role("radio", name="Stratified")).to_be_checked()
    expect(preview.get_by_role("status")).to_have_count(0)
    assert sideways(page) == 0
    assert buyer.complaints == []
