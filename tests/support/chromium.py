"""Where a Chromium for the browser tests stands, if there is one."""

import importlib.util
import shutil


def executable() -> str | None:
    """The machine's own Chromium or Chrome; None leaves Playwright its own download."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    return None


def why_unavailable() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright is not installed"
    if executable() is None:
        return "neither chromium nor google-chrome is on PATH (Debian: apt-get install chromium)"
    return None
