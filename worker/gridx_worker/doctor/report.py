"""What the doctor found: kept beside the agent's state, sent to the server by the agent, and shown."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from gridx_protocol.messages import DoctorCheck, DoctorReport

FILE = "doctor.json"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `problem` None: all is well; else `fix` says what to do."""

    name: str
    problem: str | None = None
    fix: str | None = None


@dataclass(frozen=True)
class Findings:
    """`score` in samples per second; None where none could be measured."""

    checks: list[Check]
    score: float | None = None

    @property
    def is_well(self) -> bool:
        return not any(check.problem for check in self.checks)


def save(findings: Findings, folder: Path) -> None:
    """Into the agent's own folder, from where the agent takes it to the server."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {"at": time.time(), "score": findings.score, "checks": [asdict(check) for check in findings.checks]}
    partial = folder / f"{FILE}.partial"
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(folder / FILE)


def load(folder: Path) -> DoctorReport | None:
    """The latest findings as the server is told; None when the doctor never ran, or its file is damaged."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        checks = [
            DoctorCheck(name=each["name"][:100], problem=_cut(each["problem"]), fix=_cut(each["fix"])) for each in content["checks"][:40]
        ]
        return DoctorReport(age_s=max(time.time() - float(content["at"]), 0.0), checks=checks, score=content["score"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def written_at(folder: Path) -> float:
    """When the file was written, 0 when there is none."""
    try:
        return (folder / FILE).stat().st_mtime
    except OSError:
        return 0.0


def _cut(text: str | None) -> str | None:
    return text[:500] if text else None
