"""scripts/ddp_demo.py, as `make ddp-demo` calls it: a master, four workers, one model on all of them."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def test_four_ranks_end_with_one_model_that_equals_training_in_one_process() -> None:
    port, master_port = _free_ports()
    command = [sys.executable, str(_ROOT / "scripts" / "ddp_demo.py"), "--port", str(port), "--master-port", str(master_port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "4 ranks trained in step" in done.stdout
    differences = [float(text) for text in re.findall(r"Largest difference .*: +(\S+)$", done.stdout, re.MULTILINE)]
    assert differences[0] == 0
    assert differences[1] <= 1e-5
    assert "training has ended well" in (_ROOT / "var" / "ddp-demo" / "logs" / "master.log").read_text()
