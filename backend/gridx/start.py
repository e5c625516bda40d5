"""Starts a command without looking for garbage: `gridx ...`, and `python -m gridx.start gridx.serve_api ...` for a process of its own.

Importing leaves next to no garbage, and CPython's collector, which looks again at every few hundred new objects, is a third of a start.
"""

import gc
import sys
from importlib import import_module


def main() -> None:
    """Behind the command `gridx`."""
    _run("gridx.cli")


def _run(name: str) -> None:
    """Calls main() of this module."""
    gc.disable()
    start = import_module(name).main
    gc.freeze()
    gc.enable()
    start()


if __name__ == "__main__":
    del sys.argv[0]
    _run(sys.argv[0])
