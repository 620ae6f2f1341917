"""What tasks write beside the data, and how they are cut."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.compat.spark.convert.commit_log_plan import Measured, lay_out
from logstore.compat.spark.convert.row_groups import RowGroupWriter
from logstore.compat.spark.work_unit import WorkUnit

#: it carries no types
parquet: Any = importlib.import_module("pyarrow.parquet")
MIB = 1024 * 1024
FILE_BYTES = 1024 * MIB


def measured(count: int) -> list[Measured]:
    """Return units of 32 MiB, eight a partition."""
    return [
        Measured(WorkUnit("a.log", "t", number // 8, 0, 32 * MIB, 0, 1000), 1000, 32 * MIB, 1100, 1)
        for number in range(count)
    ]


@pytest.mark.parametrize("unit_count", [8, 63, 65, 320])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_no_worker_has_much_more_to_do_than_another(unit_count: int, parallelism: int) -> None:
    """As many tasks for each, of about the same size; every unit is in one, in order."""
    units = measured(unit_count)
    firsts = {("t", number): 0 for number in range(unit_count)}
    spans = lay_out(units, firsts, FILE_BYTES, 256 * MIB, parallelism=parallelism)
    assert [placed.unit for span in spans for placed in span.units] == [one.unit for one in units]
    counts = [len(span.units) for span in spans]
    assert all(count * 32 * MIB < FILE_BYTES for count in counts)
    if parallelism == 1:
        assert max(counts[:-1], default=0) in (0, 31)  # files are as full as they can be
    elif unit_count * 32 >= 64 * parallelism:
        assert len(spans) % parallelism == 0
        assert max(counts) - min(counts) <= 1


def test_rows_of_two_partitions_share_no_group(tmp_path: Path) -> None:
    """Small steps of one partition wait for one another, and statistics tell what is where."""
    path = tmp_path / "rows.parquet"
    with RowGroupWriter(path, ("offset", "text"), rising=("offset",), odd=("text",)) as rows:
        for topic, partition, steps in (("t", 0, 6), ("t", 1, 1), ("u", 1, 1)):
            for step in range(steps):
                offsets = np.arange(step * 5000, (step + 1) * 5000)
                rows.add(topic, partition, (offsets, [b"x%d" % offset for offset in offsets]))
    metadata = parquet.read_metadata(path)
    found = [
        tuple(metadata.row_group(group).column(index).statistics for index in range(3))
        for group in range(metadata.num_row_groups)
    ]
    assert [(topic.min, part.min, offset.min, offset.max) for topic, part, offset in found] == [
        ("t", 0, 0, 19_999),
        ("t", 0, 20_000, 29_999),
        ("t", 1, 0, 4_999),
        ("u", 1, 0, 4_999),
    ]
    assert all(topic.min == topic.max and part.min == part.max for topic, part, _ in found)
    table = parquet.read_table(path)
    assert table.num_rows == 40_000
    assert table.column("text")[29_999].as_py() == b"x29999"


def test_long_texts_are_not_held_back(tmp_path: Path) -> None:
    """What waits has some MiB at most, so that a task stays as small as it is."""
    path = tmp_path / "rows.parquet"
    with RowGroupWriter(path, ("text",), odd=("text",)) as rows:
        for _ in range(6):
            rows.add("t", 0, ([bytes(MIB)] * 3,))
    metadata = parquet.read_metadata(path)
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [6, 6, 6]
