"""The pool in which rows are split and models merged."""

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from gridx.background.executor import RespawningPool

PARENT = """
import os, sys
from gridx.background.executor import RespawningPool
if __name__ == "__main__":
    pool = RespawningPool(2)
    print(pool.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""


def test_its_processes_end_when_the_one_they_work_for_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdin is not None
    worker = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait(10)
    worker.wait(20)
    parent.stdout.close()
    parent.stdin.close()


def test_a_killed_process_is_replaced() -> None:
    pool = RespawningPool(1)
    try:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()
        assert pool.submit(abs, -3).result() == 3
    finally:
        pool.shutdown()
