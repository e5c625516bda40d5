"""Starts a command without looking for garbage: `gridx ...`, and `python -m gridx.start gridx.background ...` for a process of its own.

Importing leaves next to no garbage, and CPython's collector, which looks again at every few hundred new objects, is a third of a start.
"""

import gc
import sys
from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """Behind the command `gridx`."""
    _run("gridx.cli")


def _run(name: str) -> None:
    """Calls main() of this module, or of this package's __main__."""
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
    gc.disable()
    start = import_module(name).main
    gc.freeze()
    gc.enable()
    start()


if __name__ == "__main__":
    del sys.argv[0]
    _run(sys.argv[0])
