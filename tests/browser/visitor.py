"""Somebody with a browser: logged in, and able to say what a page looks like to the machine that checks it."""

import secrets
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.e2e.platform import Platform, User

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse"
# What the browser says by itself when the server is away or refuses; nothing of the app's own.
_NETWORK_NOISE = "Failed to load resource"


@dataclass
class Visitor:
    """`user` calls the API past the browser; `complaints` are errors and refused loads that the page itself was told of."""

    page: Page
    user: User
    email: str
    complaints: list[str] = field(default_factory=list[str])

    @classmethod
    def logged_in(cls, platform: Platform, context: BrowserContext, role: str) -> "Visitor":
        email = f"{role}-{secrets.token_hex(4)}@lab.example.org"
        user = User.register(platform, email, role)
        answer = context.request.post("/auth/login", data={"email": email, "password": PASSWORD})
        assert answer.ok, answer.text()
        page = context.new_page()
        made = cls(page, user, email)
        page.on("pageerror", lambda error: made.complaints.append(str(error)))
        page.on("console", lambda message: made.complaints.append(message.text) if is_complaint(message.type, message.text) else None)
        return made

    def open(self, path: str, heading: str) -> None:
        """A page, once it shows its heading."""
        self.page.goto(path)
        expect(self.page.get_by_role("heading", level=1, name=heading)).to_be_visible()

    @property
    def wallet(self) -> Locator:
        """The number in the navigation."""
        return self.page.get_by_role("link", name="Wallet").locator("b").locator("visible=true")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)


def is_complaint(kind: str, text: str) -> bool:
    return kind == "error" and _NETWORK_NOISE not in text


@cache
def _axe() -> str:
    return (ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js").read_text()


def axe(page: Page) -> list[str]:
    """What axe finds against WCAG 2.2 AA and its own good practice: the rule, and the places."""
    page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [f"{item['id']}: {[node['html'][:160] for node in item['nodes'][:5]]}" for item in found]


def sideways(page: Page) -> int:
    """Pixels by which the page can be scrolled sideways."""
    return page.evaluate(
        """async () => {
            for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
            return document.documentElement.scrollWidth - document.documentElement.clientWidth;
        }"""
    )
