"""schema.json against pandas over the whole file, whatever the pieces."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gridx.datasets import describe as module
from gridx.datasets.csv_records import scan
from gridx.datasets.describe import describe


def told(tmp_path: Path, text: str) -> dict[str, Any]:
    source = tmp_path / "data.csv"
    source.write_bytes(text.encode())
    describe(source, scan(source), tmp_path / "schema.json")
    return json.loads((tmp_path / "schema.json").read_text())


@pytest.mark.parametrize("rows_at_once", [1, 7, 100_000])
def test_figures_are_those_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"x": random.normal(1e6, 1e-3, 200), "n": random.integers(-5, 5, 200), "c": random.choice(list("zab"), 200)})
    frame.loc[3, "x"] = np.nan
    found = told(tmp_path, frame.to_csv(index=False))
    assert found["rows"] == 200
    x, n, c = (found["columns"][name] for name in "xnc")
    assert (x["type"], x["missing"]) == ("number", 1)
    assert x["mean"] == pytest.approx(frame["x"].mean(), rel=1e-12)
    assert x["std"] == pytest.approx(frame["x"].std(ddof=0), rel=1e-6)
    assert (x["min"], x["max"]) == (frame["x"].min(), frame["x"].max())
    assert n["type"] == "integer"
    assert n["categories"] == sorted(set(frame["n"].tolist()))
    assert c == {"type": "text", "missing": 0, "categories": ["a", "b", "z"]}


def test_kinds(tmp_path: Path) -> None:
    found = told(tmp_path, 'a;b;c;d\n1;;x\u00e4;"one\ntwo"\n2.5;;7;inf\n-3;NA;;0\n')["columns"]
    assert found["a"] == {"type": "number", "missing": 0, "mean": pytest.approx(1 / 6), "std": pytest.approx(2.3214), "min": -3, "max": 2.5,
                          "categories": [-3, 1, 2.5]}  # fmt: skip
    assert found["b"] == {"type": "empty", "missing": 3}
    assert found["c"] == {"type": "text", "missing": 1, "categories": ["7", "x\u00e4"]}
    assert found["d"]["type"] == "text"


def test_infinities_are_no_figures(tmp_path: Path) -> None:
    found = told(tmp_path, "x,y\n1,1e308\ninf,-1e308\n3,0\n")["columns"]
    assert (found["x"]["mean"], found["x"]["max"]) == (2.0, 3.0)
    assert "categories" not in found["x"]
    assert found["y"]["missing"] == 0


def test_too_many_or_too_long_values_are_not_listed(tmp_path: Path) -> None:
    found = told(tmp_path, "x,y\n" + "".join(f"{n},{'long' * 60 if n == 5 else 'a'}\n" for n in range(1001)))["columns"]
    assert "categories" not in found["x"]
    assert found["x"]["max"] == 1000
    assert found["y"] == {"type": "text", "missing": 0}
