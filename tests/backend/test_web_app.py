"""The built web app as the backend serves it: pages for every deep link, assets for ever and compressed, unknown API paths as JSON."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from gridx import app as app_module
from gridx.app import create_app
from gridx.core.settings import Settings
from tests.backend.conftest import SECRET


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text("<!doctype html><title>Grid-X</title>")
    (dist / "assets" / "index-1a2b.js").write_text("export const x = 1;\n" * 500)
    monkeypatch.setattr(app_module, "_DIST", dist)
    home = tmp_path / "home"
    home.mkdir()
    return TestClient(create_app(Settings(home=home, jwt_secret_key=SecretStr(SECRET), _env_file=None)))  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("path", ["/", "/app", "/app/jobs/42", "/app/machines/lab-pc-7"])
def test_deep_links_get_the_page_and_it_is_not_kept(web: TestClient, path: str) -> None:
    answer = web.get(path)
    assert answer.status_code == 200
    assert "Grid-X" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


def test_assets_are_kept_for_ever_and_compressed(web: TestClient) -> None:
    answer = web.get("/assets/index-1a2b.js", headers={"Accept-Encoding": "gzip"})
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text.startswith("export const")


@pytest.mark.parametrize("path", ["/assets/../index.html", "/assets/%2e%2e/%2e%2e/home", "/assets/absent.js", "/jobs/x/y/z"])
def test_what_is_not_there_is_a_404(web: TestClient, path: str) -> None:
    assert web.get(path).status_code == 404
