"""Puts a copy of the repository's Dockerfile.base into the wheel. Editable installs read it from the root of the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DockerfileHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root).parent / "Dockerfile.base"
        if version == "standard":
            build_data["force_include"][str(source)] = "gridx_worker/Dockerfile.base"
