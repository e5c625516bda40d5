"""Reading the packaged MNIST: arrays and nothing else."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.mnist import NoData, _ArraysOnly, load


class TestArraysOnly:
    def test_reads_arrays(self) -> None:
        data = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2]))
        text = pickle.dumps(data, protocol=3).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        pixels, digits = _ArraysOnly(io.BytesIO(text), encoding="latin1").load()
        assert (pixels.tolist(), digits.tolist()) == ([[0, 1, 2], [3, 4, 5]], [1, 2])

    def test_refuses_whatever_else_a_pickle_asks_for(self) -> None:
        with pytest.raises(NoData, match="system"):
            _ArraysOnly(io.BytesIO(pickle.dumps(os.system))).load()


class TestLoad:
    def test_without_package_and_mirror_says_what_would_help(self, tmp_path: Path) -> None:
        with pytest.raises(NoData, match="GRIDX_MNIST_URL"):
            load(tmp_path)

    def test_refuses_another_file_in_the_package_s_place(self, tmp_path: Path) -> None:
        (tmp_path / "mnist" / "data").mkdir(parents=True)
        (tmp_path / "mnist" / "data" / "mnist.pkl.gz").write_bytes(b"something else")
        with pytest.raises(NoData, match="not the file"):
            load(tmp_path)
