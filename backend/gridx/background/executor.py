"""Where splitting and merging run: a pool of local processes, or a Dask cluster when GRIDX_DASK_SCHEDULER names one."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings


def make_executor(settings: Settings) -> Executor:
    if settings.dask_scheduler:
        return _dask_executor(settings.dask_scheduler)
    return RespawningPool(settings.workers)


class RespawningPool(Executor):
    """A process pool that is made anew when one of its processes was killed. They come from the forkserver, which holds no connection."""

    def __init__(self, workers: int) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for the children: there is one for every core already
        self._workers = workers
        self._lock = threading.Lock()
        self._pool = self._new_pool()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self._lock:
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._new_pool()
                return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("forkserver")
        return ProcessPoolExecutor(self._workers, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """In a child of the pool: end when the process that it works for was killed, instead of waiting for its next task for ever."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _dask_executor(address: str) -> Executor:
    try:
        from distributed import Client  # optional and heavy: only where a cluster is named  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ConfigurationError("GRIDX_DASK_SCHEDULER is set, but the package 'distributed' is not installed") from None
    return Client(address).get_executor()
