"""Ranges of offsets that are shared out to tasks: in how many, and that none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark.offset_ranges import OffsetRange, divided


def ranges_of(*counts: int) -> list[OffsetRange]:
    """Return a range for each count, each from 100 on, of partitions of its own."""
    return [OffsetRange("t", index, 100, 100 + count) for index, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("counts", "count_min", "offset_count_max", "task_count"),
    [
        # as Spark 4.2's Kafka source makes tasks of the same ranges
        ((217, 217, 166), 7, 0, 8),
        ((217, 217, 166), 2, 0, 3),
        ((217, 217, 166), 0, 50, 14),
        ((217, 217, 166), 30, 50, 28),
        ((600,), 50, 0, 50),
        ((0, 600), 2, 0, 2),
    ],
)
def test_there_are_as_many_tasks_as_sparks_source_makes(
    counts: tuple[int, ...], count_min: int, offset_count_max: int, task_count: int
) -> None:
    """Seen side by side over the same partitions."""
    assert len(divided(ranges_of(*counts), count_min, offset_count_max)) == task_count


def test_parts_are_as_large_as_each_other() -> None:
    """What does not divide goes to the last ones; where the parts touch nothing is read twice."""
    found = divided(ranges_of(10), 0, 4)
    assert [(one.start, one.end) for one in found] == [(100, 103), (103, 106), (106, 110)]


@given(
    counts=st.lists(st.integers(0, 400), max_size=6),
    count_min=st.integers(0, 60),
    offset_count_max=st.integers(0, 500),
)
def test_parts_cover_what_is_wanted_once(
    counts: list[int], count_min: int, offset_count_max: int
) -> None:
    """In order, none of them empty, none too large."""
    ranges = ranges_of(*counts)
    found = divided(ranges, count_min, offset_count_max)
    for one in ranges:
        parts = [part for part in found if part.partition == one.partition]
        offsets = [offset for part in parts for offset in range(part.start, part.end)]
        assert offsets == list(range(one.start, one.end))
    assert all(part.offset_count > 0 for part in found)
    if offset_count_max:
        assert all(part.offset_count <= offset_count_max for part in found)
