"""Walks through all updates window by window on a few threads, and hands the results on in order."""

import os
import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

import numpy as np

from gridx.aggregation.sources import Segment, windows
from gridx.aggregation.summary import TensorSpec

T = TypeVar("T")
_WINDOW_ELEMENTS = 1 << 20  # of all updates together; measured: smaller ones pay per call, larger ones leave the cache


class Workspace:
    """One thread's arrays, made once: fresh pages for every window would cost more than the arithmetic."""

    def __init__(self, updates: int, elements: int) -> None:
        self.raw = np.empty((updates, elements * 8), dtype=np.uint8)
        self.values = np.empty(updates * elements)
        self.scratch, self.mean, self.uniform, self.previous = np.empty((4, elements))
        self.single = np.empty(elements, dtype=np.float32)


def in_order(specs: Sequence[TensorSpec], updates: int, stack: ExitStack, work: Callable[[list[Segment], Workspace], T]) -> Iterator[T]:
    """Does `work` for all windows on a few threads and yields what it returns in order, a bounded number in flight."""
    elements = max(1 << 11, min(1 << 20, _WINDOW_ELEMENTS // updates))
    threads = max(1, min(4, os.cpu_count() or 1))
    spaces: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
    for _ in range(threads):
        spaces.put(Workspace(updates, elements))

    def run(window: list[Segment]) -> T:
        space = spaces.get()
        try:
            return work(window, space)
        finally:
            spaces.put(space)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="merge")
    stack.callback(pool.shutdown, cancel_futures=True)  # before the files that its threads read are closed
    pending: deque[Future[T]] = deque()
    for window in windows(specs, elements):
        pending.append(pool.submit(run, window))
        if len(pending) > 4 * threads:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
