"""Pictures of every page for docs/images, from a platform that really trains.

python -m tests.browser.screenshots [--sandbox docker|process] [--into docs/images] [--only job,wallet]
"""

import argparse
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.conftest import ARGUMENTS, PATIENCE_MS, ROOT
from tests.browser.scene import register_machine
from tests.browser.visitor import PASSWORD
from tests.e2e.platform import AgentProcess, Platform, User, until
from tests.support import chromium

EXAMPLE = ROOT / "examples" / "breast_cancer"
ROWS = ROOT / "frontend" / "src" / "features" / "newjob" / "breast_cancer.csv"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
BUYER, SELLER = "ada@lab.example.org", "sam@lab.example.org"
PETALS = b"length,width,species\n" + b"".join(b"%.1f,%.1f,%d\n" % (1 + n % 7 / 2, n % 5 / 3, n % 3) for n in range(1, 151))
BROKEN = (EXAMPLE / "train.py").read_text().replace('LABEL = "benign"', 'LABEL = "diagnosis"')


class Story:
    """A buyer, two sellers with three machines, and a few jobs, one of them under way."""

    def __init__(self, platform: Platform, sandbox: str) -> None:
        self.buyer = User.register(platform, BUYER, "buyer")
        made = self.buyer.call("POST", "/datasets", params={"name": "breast_cancer.csv"}, content=ROWS.read_bytes())
        self.dataset: int = made.json()["id"]
        assert self.buyer.call("POST", "/datasets", params={"name": "petals.csv"}, content=PETALS).is_success
        self.seller = User.register(platform, SELLER, "seller")
        register_machine(self.seller, "lab-pc-03", "Laboratory, second floor")  # heard of once; offline by the time of the pictures
        for name, owner in (("lab-pc-14", self.seller), ("lab-pc-15", self.seller), ("attic-1", None)):
            seller = owner or User.register(platform, "kim@lab.example.org", "seller")
            key = seller.call("POST", "/agent/keys", json={"label": name}).json()["key"]
            AgentProcess(platform, name, seller, sandbox, key).start()
        cancelled = self.submit("Tumour classifier, twenty rounds", rounds=20)
        assert self.buyer.call("POST", f"/jobs/{cancelled}/cancel").is_success
        self.first = self.submit("Tumour classifier", rounds=4)
        self.second = self.submit("Tumour classifier, slower steps", rounds=4, learning_rate=0.005)
        self.failed = self.submit("Tumour classifier, other label", rounds=2, script=BROKEN)
        for job in (self.first, self.second, self.failed):
            self.buyer.ended(job, 600)
        self.running = self.submit("Tumour classifier, ten rounds", rounds=10, epochs=250, learning_rate=0.0003)
        until(lambda: self.buyer.job(self.running).get("current_round", 0) >= 4, 600, "four rounds")
        assert self.buyer.call("GET", "/stats/summary").json()["agents"]["online"] == 3

    def submit(self, title: str, *, rounds: int, script: str | None = None, **hyperparameters: float) -> int:
        files = {
            "file_code": ("train.py", script or (EXAMPLE / "train.py").read_text()),
            "file_req": ("requirements.txt", (EXAMPLE / "requirements.txt").read_text()),
        }
        data = {"title": title, "dataset_id": self.dataset, "chunks": 3, "rounds": rounds}
        data["hyperparameters"] = json.dumps({"epochs": 5} | hyperparameters)
        answer = self.buyer.call("POST", "/jobs/upload", data=data, files=files)
        assert answer.is_success, answer.text
        return answer.json()["job_id"]


class Camera:
    def __init__(self, browser: Browser, platform: Platform, into: Path, only: list[str]) -> None:
        self.browser, self.platform, self.into, self.only = browser, platform, into, only

    def shot(
        self,
        name: str,
        path: str,
        email: str | None = None,
        *,
        theme: str = "light",
        size: ViewportSize = DESK,
        first: Callable[[Page], object] = lambda page: None,
    ) -> None:
        if self.only and name not in self.only:
            return
        context = self.browser.new_context(
            base_url=self.platform.url,
            viewport=size,
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            locale="en-GB",
        )
        context.set_default_timeout(PATIENCE_MS)
        if email:
            assert context.request.post("/auth/login", data={"email": email, "password": PASSWORD}).ok
        page = context.new_page()
        page.goto(path)
        page.wait_for_load_state("networkidle")
        first(page)
        expect(page.get_by_text("Fetching")).to_have_count(0)
        page.screenshot(path=self.into / f"{name}.png")
        context.close()


def fill_in(page: Page) -> None:
    page.get_by_role("button", name="Fill in the example").click()
    expect(page.get_by_role("button", name="Change data")).to_be_visible()


def take_all(camera: Camera, story: Story) -> None:
    job = f"/app/jobs/{story.running}"

    def by_round(page: Page) -> None:
        expect(page.get_by_role("table", name=re.compile("^Subtasks")).get_by_role("progressbar").first).to_be_visible(timeout=120_000)
        page.get_by_role("button", name="by round").click()
        expect(page.get_by_role("img", name=re.compile("by round"))).to_be_visible()

    camera.shot("job", job, BUYER, first=by_round)
    camera.shot("job-dark", job, BUYER, theme="dark", first=by_round)
    camera.shot("job-phone", job, BUYER, size=PHONE, first=by_round)
    camera.shot("machines", "/app/machines", SELLER)
    camera.shot("machine", "/app/machines/lab-pc-14", SELLER)
    camera.shot("network-dark", "/app/network", BUYER, theme="dark")
    camera.shot("node", "/app/network/attic-1", BUYER)
    camera.shot("landing", "/")
    camera.shot("jobs", "/app/jobs", BUYER)
    camera.shot("job-failed", f"/app/jobs/{story.failed}", BUYER)
    camera.shot("compare", f"/app/jobs/compare?a={story.first}&b={story.second}", BUYER)
    camera.shot("new-job", "/app/jobs/new", BUYER, first=fill_in)
    camera.shot("datasets", "/app/datasets", BUYER)
    camera.shot("wallet", "/app/wallet", BUYER)
    camera.shot("guide", "/app/guide/contract", BUYER)
    camera.shot("account", "/app/account", BUYER)
    camera.shot("register", "/app/register")


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of every page.")
    parser.add_argument("--sandbox", choices=["docker", "process"], default="docker")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gridx-pictures-") as folder:
        platform = Platform(Path(folder) / "home")
        try:
            platform.start()
            story = Story(platform, options.sandbox)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.executable(), args=ARGUMENTS)
                take_all(Camera(browser, platform, options.into, options.only), story)
                browser.close()
        except BaseException:
            for log in platform.home.glob("*.log"):
                print(f"== {log.name}\n{log.read_text()[-3000:]}")
            raise
        finally:
            platform.close()


if __name__ == "__main__":
    main()
