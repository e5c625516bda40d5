"""Writes data.csv: the 150 flowers of the iris set, which scikit-learn ships. Needs scikit-learn.

python make_data.py [data.csv]
"""

import csv
import sys

from sklearn.datasets import load_iris

target = sys.argv[1] if len(sys.argv) > 1 else "data.csv"
bunch = load_iris()
with open(target, "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["sepal_length", "sepal_width", "petal_length", "petal_width", "species"])
    for features, label in zip(bunch.data, bunch.target, strict=True):
        writer.writerow([*map(float, features), int(label)])
print(f"{target}: {len(bunch.data)} rows")
