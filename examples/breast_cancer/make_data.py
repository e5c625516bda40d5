"""Writes data.csv: the 569 rows of the Wisconsin diagnostic breast cancer set, which scikit-learn ships. Needs scikit-learn.

python make_data.py [data.csv]
"""

import csv
import sys

from sklearn.datasets import load_breast_cancer

target = sys.argv[1] if len(sys.argv) > 1 else "data.csv"
bunch = load_breast_cancer()
with open(target, "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name.replace(" ", "_") for name in bunch.feature_names] + ["benign"])
    for features, label in zip(bunch.data, bunch.target, strict=True):
        writer.writerow([*map(float, features), int(label)])
print(f"{target}: {len(bunch.data)} rows")
