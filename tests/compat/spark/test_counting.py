"""Counts of units, put together to those of partitions."""

from __future__ import annotations

import subprocess
import sys

from logstore.compat.spark.counting import partition_rows

COUNTING = """
import sys
import logstore.compat.spark.header_count, logstore.compat.spark.stores
print(sorted({"numba", "numpy", "pyarrow"} & set(sys.modules)))
"""


def test_units_of_a_partition_become_one_row() -> None:
    """Counts and bytes add up, the offsets are the outer ones; partitions come in order."""
    rows = partition_rows(
        [
            ("b", 0, 5, 0, 4, 500),
            ("a", 1, 3, 10, 14, 300),
            ("a", 1, 2, 7, 9, 200),
            ("a", 0, 1, 0, 0, 100),
        ]
    )

    assert rows == [("a", 0, 1, 0, 0, 100), ("a", 1, 5, 7, 14, 500), ("b", 0, 5, 0, 4, 500)]


def test_counting_by_headers_loads_no_compiled_loops() -> None:
    """A worker that only walks over headers is there at once."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
