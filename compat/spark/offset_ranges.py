"""
How what is wanted of partitions is shared out to tasks when their number or size is asked for.

``maxRecordsPerPartition`` bounds the offsets of a task; then ``minPartitions`` divides the largest
ranges further until there are about so many tasks. Source: Spark's ``KafkaOffsetRangeCalculator``,
whose numbers of tasks these are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import attrs


@attrs.frozen
class OffsetRange:
    """The offsets ``[start, end)`` of a partition; some of them may have no record."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def offset_count(self) -> int:
        """How many offsets there are."""
        return self.end - self.start


def divided(
    ranges: Iterable[OffsetRange], count_min: int, offset_count_max: int
) -> list[OffsetRange]:
    """Divide ranges into about `count_min`, none above `offset_count_max`; 0: no such bound."""
    found = [one for one in ranges if one.offset_count > 0]
    if offset_count_max:
        found = [
            part for one in found for part in _parts(one, -(-one.offset_count // offset_count_max))
        ]
    if count_min <= len(found):
        return found
    total = sum(one.offset_count for one in found)
    small = [one for one in found if _share(one.offset_count, total, count_min) == 1]
    small_places = {(one.topic, one.partition) for one in small}
    rest = total - sum(one.offset_count for one in small)
    rest_count_min = max(count_min - len(small), 1)
    return [
        part
        for one in found
        for part in _parts(
            one,
            1
            if (one.topic, one.partition) in small_places
            else _share(one.offset_count, rest, rest_count_min),
        )
    ]


def _share(offset_count: int, total: int, count_min: int) -> int:
    """Return into how many parts a range goes, its share of all (rounded as Java rounds)."""
    return max(math.floor(offset_count / total * count_min + 0.5), 1)


def _parts(one: OffsetRange, count: int) -> Iterator[OffsetRange]:
    """Yield the parts of a range that are not empty; the last ones take what does not divide."""
    start, remaining = one.start, one.offset_count
    for number in range(count):
        taken = remaining // (count - number)
        remaining -= taken
        if taken:
            yield attrs.evolve(one, start=start, end=start + taken)
        start += taken
