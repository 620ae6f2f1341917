"""What filters say about where rows can stand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from logstore.compat.spark.predicates import INT64_MAX, Where, where_of

sql = pytest.importorskip("pyspark.sql.datasource", reason="pyspark is missing: extra `spark`")
if not hasattr(sql, "EqualTo"):
    pytest.skip("filters reach a source since Spark 4.1", allow_module_level=True)

MOMENT = datetime(2023, 11, 14, 22, 13, 20, 5999, tzinfo=UTC)
MOMENT_MS = 1_700_000_000_005


def test_no_filter_bounds_nothing() -> None:
    """Everything is wanted."""
    assert where_of([]) == Where()
    assert Where().wants("any", 7)
    assert not Where().has_times


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("GreaterThan", 11, INT64_MAX),
        ("GreaterThanOrEqual", 10, INT64_MAX),
        ("LessThan", 0, 9),
        ("LessThanOrEqual", 0, 10),
        ("EqualTo", 10, 10),
        ("EqualNullSafe", 10, 10),
    ],
)
def test_offsets_are_bounded(kind: str, low: int, high: int) -> None:
    """Each comparison, both bounds inclusive."""
    where = where_of([getattr(sql, kind)(("offset",), 10)])
    assert (where.offset_min, where.offset_max) == (low, high)


def test_all_filters_hold_together() -> None:
    """Topics and partitions are what all of them allow."""
    filters = [
        sql.In(("topic",), ("a", "b")),
        sql.EqualTo(("topic",), "b"),
        sql.In(("partition",), (1, 2)),
        sql.GreaterThan(("offset",), 5),
        sql.LessThan(("offset",), 9),
    ]
    where = where_of(filters)
    assert (where.topics, where.partitions) == (frozenset({"b"}), frozenset({1, 2}))
    assert (where.offset_min, where.offset_max) == (6, 8)
    assert where.wants("b", 2)
    assert not where.wants("a", 2)
    assert not where.wants("b", 0)


@pytest.mark.parametrize("kind", ["GreaterThan", "GreaterThanOrEqual"])
def test_times_below_are_cut_at_the_millisecond(kind: str) -> None:
    """Records have no microseconds: the bound is rounded down, which loses no row."""
    where = where_of([getattr(sql, kind)(("timestamp",), MOMENT)])
    assert (where.timestamp_ms_min, where.timestamp_ms_max) == (MOMENT_MS, INT64_MAX)
    assert where.has_times


@pytest.mark.parametrize("kind", ["LessThan", "LessThanOrEqual"])
def test_times_above_are_cut_too(kind: str) -> None:
    """The other way round."""
    where = where_of([getattr(sql, kind)(("timestamp",), MOMENT)])
    assert (where.timestamp_ms_min, where.timestamp_ms_max) == (-INT64_MAX, MOMENT_MS)


@pytest.mark.parametrize(
    "one",
    [
        lambda: sql.Not(sql.EqualTo(("topic",), "a")),
        lambda: sql.EqualTo(("value",), b"x"),
        lambda: sql.EqualTo(("topic", "inner"), "a"),
        lambda: sql.In(("topic",), (None, "a")),
        lambda: sql.StringStartsWith(("topic",), "a"),
        lambda: sql.IsNotNull(("offset",)),
    ],
)
def test_what_is_not_understood_narrows_nothing(one: Any) -> None:
    """Spark applies it anyway."""
    assert where_of([one()]) == Where()
