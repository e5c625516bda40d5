"""The web app's own unit tests (vitest), so that `make test` runs them too."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not (ROOT / "frontend" / "node_modules").is_dir(), reason="the web app's packages are not installed: make web")
def test_vitest() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "with-node", "npm", "test"], cwd=ROOT / "frontend", capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
