"""scripts/demo.py, as `make demo` calls it: from nothing to a measured model, and a second run that need not set anything up."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_ROUNDS = 2
pytestmark = pytest.mark.slow


def _demo(sandbox: str) -> str:
    command = [sys.executable, str(_ROOT / "scripts" / "demo.py"), "--sandbox", sandbox, "--rounds", str(_ROUNDS), "--timeout", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=360, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


# One file, so that the two never run at the same time: they share var/demo.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("sandbox", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_the_demo_ends_with_a_good_model_and_a_clean_ledger(sandbox: str, request: pytest.FixtureRequest) -> None:
    if sandbox == "docker":
        request.getfixturevalue("sandbox_image")

    said = _demo(sandbox)

    assert f"each in the {sandbox} sandbox" in said
    accuracies = [float(text) for text in re.findall(r"^Round \d+ +([\d.]+)% of the held-out rows right$", said, re.MULTILINE)]
    assert len(accuracies) == _ROUNDS
    assert accuracies[-1] > 85
    price = 5 * _ROUNDS
    assert f"buyer 100 -> {100 - price}, " in said
    gains = [int(after) - int(before) for before, after in re.findall(r"seller-\d (\d+) -> (\d+)", said)]
    assert len(gains) == 2
    assert sum(gains) == price
    assert "the ledger is clean" in said
    model = re.search(r"^Final model +(\S+)$", said, re.MULTILINE)
    assert model
    assert (_ROOT / model[1]).stat().st_size > 0
