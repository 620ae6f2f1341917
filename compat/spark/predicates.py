"""
What a query's filters say about where its rows can stand.

Filters only narrow the search: Spark applies every one of them again, so that a filter which is
not understood here costs time and never rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

INT64_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@attrs.frozen
class Where:
    """
    Bounds that all wanted rows are within; all of them inclusive.

    `topics` and `partitions` None say that any will do.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_max: int = INT64_MAX
    timestamp_ms_min: int = -INT64_MAX
    timestamp_ms_max: int = INT64_MAX

    @property
    def has_times(self) -> bool:
        """Tell whether timestamps are bounded."""
        return self.timestamp_ms_min > -INT64_MAX or self.timestamp_ms_max < INT64_MAX

    def wants(self, topic: str, partition: int) -> bool:
        """Tell whether rows of this partition can be wanted."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


def where_of(filters: Iterable[Filter]) -> Where:
    """Return the bounds that these filters, all of which must hold, set together."""
    where = Where()
    for one in filters:
        where = _narrowed(where, one)
    return where


def _narrowed(where: Where, one: Any) -> Where:
    attribute = getattr(one, "attribute", None)
    if attribute is None or len(attribute) != 1:
        return where
    column, kind = attribute[0].lower(), type(one).__name__
    if kind in ("EqualTo", "EqualNullSafe"):
        return _equal(where, column, {one.value})
    if kind == "In":
        return _equal(where, column, set(one.value))
    if column == "offset" and isinstance(getattr(one, "value", None), int):
        low, high = _ints(kind, one.value)
        return attrs.evolve(
            where, offset_min=max(where.offset_min, low), offset_max=min(where.offset_max, high)
        )
    if column == "timestamp" and isinstance(getattr(one, "value", None), datetime):
        low, high = _times(kind, one.value)
        return _between(where, low, high)
    return where


def _equal(where: Where, column: str, values: set[Any]) -> Where:
    if not values or None in values:
        return where
    if column == "topic":
        topics = frozenset(values)
        return attrs.evolve(where, topics=topics if where.topics is None else where.topics & topics)
    if column == "partition":
        found = frozenset(values)
        return attrs.evolve(
            where, partitions=found if where.partitions is None else where.partitions & found
        )
    if column == "offset":
        return attrs.evolve(
            where,
            offset_min=max(where.offset_min, min(values)),
            offset_max=min(where.offset_max, max(values)),
        )
    if column == "timestamp":
        times = [_milliseconds(value) for value in values]
        return _between(where, min(times), max(times))
    return where


def _between(where: Where, low: int, high: int) -> Where:
    return attrs.evolve(
        where,
        timestamp_ms_min=max(where.timestamp_ms_min, low),
        timestamp_ms_max=min(where.timestamp_ms_max, high),
    )


def _ints(kind: str, value: int) -> tuple[int, int]:
    low, high = -INT64_MAX, INT64_MAX
    if kind == "GreaterThan":
        low = value + 1
    elif kind == "GreaterThanOrEqual":
        low = value
    elif kind == "LessThan":
        high = value - 1
    elif kind == "LessThanOrEqual":
        high = value
    return low, high


def _times(kind: str, value: datetime) -> tuple[int, int]:
    """Return bounds in ms; a record's time has no more digits, so rounding down loses nothing."""
    low, high = -INT64_MAX, INT64_MAX
    if kind in ("GreaterThan", "GreaterThanOrEqual"):
        low = _milliseconds(value)
    elif kind in ("LessThan", "LessThanOrEqual"):
        high = _milliseconds(value)
    return low, high


def _milliseconds(value: datetime) -> int:
    """Return ms since the epoch; Spark hands its timestamps on in UTC, or as local time."""
    aware = value.astimezone(UTC) if value.tzinfo is None else value
    return (aware - _EPOCH) // _MILLISECOND
