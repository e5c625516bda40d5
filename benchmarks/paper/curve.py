"""A run's curve: what is kept of each round, and when a target was reached. Nothing here needs torch."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


def crossing(accuracies: Sequence[float], target: float) -> float | None:
    """Rounds until the best accuracy so far first reaches `target`, interpolated between the two rounds around it; None: never.

    McMahan et al. 2017, section 3: the curve is made monotone by the best value over all prior rounds.
    """
    best = 0.0
    for done, accuracy in enumerate(accuracies):
        if accuracy >= target:
            return done + (target - best) / (accuracy - best)
        best = max(best, accuracy)
    return None


@dataclass
class Curve:
    """The rounds of one run, kept in a file that is whole after every round."""

    path: Path
    settings: dict[str, Any]
    accuracies: list[float] = field(default_factory=list[float])
    seconds: float = 0.0
    model: str | None = None
    """SHA-256 of the global model after the last round."""

    @classmethod
    def resume(cls, path: Path, settings: dict[str, Any]) -> "Curve":
        """The run as far as it came, or its start where the file is missing or of other settings."""
        settings = json.loads(json.dumps(settings))
        if path.is_file():
            kept = json.loads(path.read_text())
            if kept["settings"] == settings:
                return cls(path, **kept)
        return cls(path, settings)

    def add(self, accuracy: float, seconds: float, model: str) -> None:
        """Note a finished round."""
        self.accuracies.append(accuracy)
        self.seconds += seconds
        self.model = model
        kept = {name: value for name, value in asdict(self).items() if name != "path"}
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(kept))
        os.replace(temporary, self.path)
