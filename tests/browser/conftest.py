"""A browser and a running platform for each file of browser tests.

Playwright's own fixtures live as long as the session, and its event loop with them: asyncio tests that come later in the same process
would fail. Here they end with the file.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page, Playwright, expect, sync_playwright

from tests.browser.visitor import Visitor
from tests.e2e.platform import AgentProcess, Platform
from tests.support import chromium, needs

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 20_000
"""A busy machine may be slow; nothing here measures it."""

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    needs.demand("chromium")
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser_type(playwright: Playwright) -> BrowserType:
    return playwright.chromium


@pytest.fixture(scope="module")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": chromium.executable(), "args": ARGUMENTS}


@pytest.fixture(scope="module")
def browser(browser_type: BrowserType, browser_type_launch_args: dict[str, Any]) -> Iterator[Browser]:
    started = browser_type.launch(**browser_type_launch_args)
    yield started
    started.close()


@pytest.fixture(scope="module")
def browser_context_args(platform: Platform) -> dict[str, Any]:
    return {
        "base_url": platform.url,
        "locale": "en-GB",
        "color_scheme": "light",
        "reduced_motion": "reduce",
        "viewport": {"width": 1280, "height": 800},
    }


@pytest.fixture
def context(new_context: Callable[..., BrowserContext]) -> BrowserContext:
    made = new_context()
    made.set_default_timeout(PATIENCE_MS)
    return made


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server on SQLite with the built web app, for all tests of a file."""
    needs.demand("chromium")
    if not (ROOT / "frontend" / "dist" / "index.html").exists():
        pytest.fail("the web app is not built: make web", pytrace=False)
    home = tmp_path_factory.mktemp("platform")
    made = Platform(home)
    try:
        made.start()
        yield made
        checked = made.gridx("check-ledger")
        assert checked.returncode == 0, checked.stderr
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def visit(new_context: Callable[..., BrowserContext], platform: Platform) -> Callable[..., Visitor]:
    """Makes visitors: `visit(role="seller")` is somebody registered and logged in, with a browser of their own."""

    def make(role: str = "buyer", **options: Any) -> Visitor:
        context = new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        return Visitor.logged_in(platform, context, role)

    return make


@pytest.fixture
def unexpected(page: Page) -> list[str]:
    """Errors of the page's own scripts, as they come."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


@pytest.fixture(scope="module")
def agents(platform: Platform) -> Iterator[list[AgentProcess]]:
    """Two sellers' machines, one each, in the process sandbox."""
    started = [AgentProcess.start_new(platform, name) for name in ("ada", "bob")]
    yield started
    for agent in started:
        agent.kill()
