"""The committed stubs are what the compiler makes of orchestrator.proto."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROTOCOL = Path(__file__).resolve().parents[2] / "protocol"
_STUBS = ("orchestrator_pb2.py", "orchestrator_pb2.pyi", "orchestrator_pb2_grpc.py")


def test_they_are_not_stale(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed (make setup installs it)")
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "."]
    command += [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    subprocess.run([*command, "gridx_protocol/orchestrator.proto"], cwd=_PROTOCOL, check=True, timeout=60)
    for name in _STUBS:
        made = (tmp_path / "gridx_protocol" / name).read_text()
        assert made == (_PROTOCOL / "gridx_protocol" / name).read_text(), f"{name} is stale: run `make proto` and commit"
