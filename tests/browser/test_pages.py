"""Every page: axe finds nothing in either theme, nothing scrolls sideways at any size, and strangers' words break nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, ViewportSize, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.scene import Scene
from tests.browser.visitor import PASSWORD, Visitor, axe, is_complaint, sideways
from tests.e2e.platform import Platform, User

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(240)]

PHONE: ViewportSize = {"width": 390, "height": 844}
TABLET: ViewportSize = {"width": 820, "height": 1180}
WIDE: ViewportSize = {"width": 1280, "height": 800}
LARGE: ViewportSize = {"width": 1920, "height": 1080}
OVERRIDE = "\u202e"  # what follows reads from right to left
LONG_WORD = "w" * 10_000
NASTY = f"<img src=x onerror=window.hurt=1><b>bold</b>{OVERRIDE}gnp.exe"
LINK = "\x1b]8;;https://example.org\x07link\x1b]8;;\x07"
LOG = f"\x1b[31mred\x1b[0m {LINK} <script>window.hurt=1</script>\n{OVERRIDE}turned\n50%\r100%\n{LONG_WORD}\n"


@pytest.fixture(scope="module")
def everybody(platform: Platform) -> User:
    """Buyer and seller in one, so that one login sees all pages."""
    return User.register(platform, "everybody@lab.example.org", "both")


@pytest.fixture(scope="module")
def scene(platform: Platform, everybody: User) -> Scene:
    """Jobs in every state, one of them as hostile as the API lets a user be."""
    made = Scene.made(platform, everybody, everybody, machines=3)
    training = made.job("Tumour classifier", "RUNNING", rounds=4, chunks=3, hyperparameters={"epochs": 5})
    made.train(training, 4, 3, 5, log="epoch 1: loss 0.5\n", is_running=True)
    done = made.job("Digits", rounds=3, chunks=3)
    made.train(done, 3, 3, 5, log="epoch 1: loss 0.5\n")
    in_step = made.job("In step", "RUNNING", chunks=3, mode="ddp")
    made.train_in_step(in_step, 3, 5)
    hostile = made.job(
        NASTY,
        "FAILED",
        chunks=2,
        reason=f"{NASTY}\n{LONG_WORD}",
        arguments=[LONG_WORD, NASTY],
        hyperparameters={LONG_WORD[:300]: LONG_WORD, NASTY: NASTY},
        warnings=[LONG_WORD, NASTY],
    )
    made.train(hostile, 1, 2, 2, log=LOG)
    made.job("Cancelled one", "CANCELLED", reason="cancelled by its owner")
    csv = f"{NASTY.replace(',', '')},{LONG_WORD[:3000]}\n".encode() + b"<b>1</b>,2\n" * 4
    assert everybody.call("POST", "/datasets", params={"name": NASTY}, content=csv).is_success
    everybody.call("POST", "/agent/keys", json={"label": NASTY})
    everybody.call("POST", "/agent/keys", json={"label": LONG_WORD[:200]})
    return made


@pytest.fixture(scope="module")
def paths(scene: Scene) -> dict[str, str]:
    """Address -> a heading that shows when the page is there."""
    jobs = {job["title"]: job["id"] for job in scene.buyer.call("GET", f"/jobs/list/{scene.buyer.id}").json()}
    machine = scene.machines[0]
    return {
        "/": "Train your model on machines that would otherwise idle.",
        "/app/jobs": "Jobs",
        "/app/jobs/new": "New job",
        f"/app/jobs/{jobs['Tumour classifier']}": "Tumour classifier",
        f"/app/jobs/{jobs['Digits']}": "Digits",
        f"/app/jobs/{jobs['In step']}": "In step",
        f"/app/jobs/{jobs[NASTY]}": "<img src=x",
        f"/app/jobs/compare?a={jobs['Tumour classifier']}&b={jobs['Digits']}": "Compare two jobs",
        "/app/datasets": "Datasets",
        "/app/machines": "Machines",
        "/app/machines?add": "Machines",
        f"/app/machines/{machine}": machine,
        "/app/network": "Network",
        f"/app/network/{machine}": machine,
        "/app/wallet": "Wallet",
        "/app/guide/contract": "Guide",
        "/app/guide/providers": "Guide",
        "/app/account": "Account",
        "/app/nowhere": "There is no such page",
    }


GUEST_PATHS = {"/": "Train your model", "/app/login": "Log in", "/app/register": "Make an account"}


@pytest.fixture(scope="module")
def member(browser: Browser, browser_context_args: dict[str, Any], platform: Platform, everybody: User) -> Iterator[Page]:
    """One window for all pages: its complaints are looked at in the end."""
    context: BrowserContext = browser.new_context(**browser_context_args)
    context.set_default_timeout(PATIENCE_MS)
    assert context.request.post("/auth/login", data={"email": "everybody@lab.example.org", "password": PASSWORD}).ok
    page = context.new_page()
    complaints: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if is_complaint(message.type, message.text):
            complaints.append(message.text)

    def asked(request: Request) -> None:
        if not request.url.startswith(f"{platform.url}/"):
            complaints.append(f"asks somebody else: {request.url}")

    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", heard)
    page.on("request", asked)
    yield page
    context.close()
    assert complaints == []


def show(page: Page, path: str, heading: str) -> None:
    page.goto(path)
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_text("Fetching")).to_have_count(0)
    page.evaluate("() => { for (const details of document.querySelectorAll('main details')) details.open = true; }")


def axe_in_both_themes(page: Page) -> list[str]:
    problems: list[str] = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        problems += [f"{theme}: {problem}" for problem in axe(page)]
    return problems


def test_axe_finds_nothing_and_nothing_scrolls_sideways(member: Page, paths: dict[str, str]) -> None:
    found: dict[str, list[str]] = {}
    for path, heading in paths.items():
        member.set_viewport_size(WIDE)
        show(member, path, heading)
        problems = axe_in_both_themes(member)
        for size in (TABLET, LARGE, PHONE):
            member.set_viewport_size(size)
            if pixels := sideways(member):
                problems.append(f"{pixels} px too wide for {size['width']}")
        problems += axe_in_both_themes(member)
        if problems:
            found[path] = problems
    assert found == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_for_guests_and_in_dialogs(page: Page, visit: Callable[..., Visitor], theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    for path, heading in GUEST_PATHS.items():
        show(page, path, heading)
        assert axe(page) == [], path
    visitor = visit("buyer")
    visitor.page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    visitor.open("/app/account", "Account")
    visitor.button("Log out everywhere").click()
    expect(visitor.page.get_by_role("dialog")).to_be_visible()
    assert axe(visitor.page) == []
    visitor.open("/app/jobs/new", "New job")
    visitor.button("Submit job").click()
    assert axe(visitor.page) == []
    visitor.open("/app/jobs", "Jobs")
    assert axe(visitor.page) == []


def test_the_menu_on_a_phone(member: Page, paths: dict[str, str]) -> None:
    member.set_viewport_size(PHONE)
    show(member, "/app/jobs", "Jobs")
    member.get_by_text("Menu", exact=True).click()
    assert axe(member) == []
    member.keyboard.press("Escape")
    expect(member.get_by_role("link", name="Network")).to_be_hidden()
    member.get_by_text("Menu", exact=True).click()
    member.get_by_role("link", name="Network").click()
    expect(member.get_by_role("heading", level=1, name="Network")).to_be_visible()
    expect(member.get_by_role("link", name="Wallet")).to_be_hidden()


@pytest.mark.parametrize("width", [PHONE["width"], WIDE["width"]])
def test_strangers_words_are_shown_harmlessly(member: Page, paths: dict[str, str], width: int) -> None:
    member.set_viewport_size({"width": width, "height": 844})
    hostile = next(path for path, heading in paths.items() if heading == "<img src=x")
    for path in (hostile, "/app/jobs", "/app/datasets", "/app/machines"):
        show(member, path, paths[path])
        expect(member.get_by_text("<b>bold</b>").locator("visible=true").first).to_be_visible()
        text = member.locator("body").inner_text()
        assert OVERRIDE not in text, path
        assert "\x1b" not in text, path
        assert member.evaluate("() => window.hurt") is None, path
        assert member.locator("main b", has_text="bold").locator("text=/^bold$/").count() == 0, path
        assert sideways(member) == 0, path
    show(member, hostile, "<img src=x")
    expect(member).to_have_title("<img src=x onerror=window.hurt=1><b>bold</b>gnp.exe · Grid-X")
    log = member.get_by_role("group", name="Output of chunk 0")
    expect(log).to_contain_text("red link <script>window.hurt=1</script>")
    expect(log).to_contain_text("turned")
    expect(log).to_contain_text("100%")
    expect(log).not_to_contain_text("50%")
    member.goto("/app/jobs/new")
    member.get_by_role("button", name="gnp.exe").click()  # what stands after the last slash of its name
    expect(member.get_by_role("region", name="First rows of the CSV")).to_contain_text("<b>1</b>")
    assert sideways(member) == 0
