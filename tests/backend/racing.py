"""Starting several threads at the same moment, for tests of contested paths."""

import threading
from collections.abc import Callable, Sequence
from typing import Any


def in_threads(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all at the same moment. Each one's return value, or the exception it ended with, in order."""
    gate = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        gate.wait()
        try:
            results[place] = work()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
