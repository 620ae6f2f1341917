"""
From a Kafka store to work units: by its indexes and file sizes alone, no data is read.

A segment is split at entries of its offset index. Bounds on offsets and times choose segments,
then places in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.spark.offset_bounds import EARLIEST, LATEST, Bound
from logstore.compat.spark.offset_ranges import OffsetRange, divided
from logstore.compat.spark.options import ReadOptions
from logstore.compat.spark.planned_file import stamp_of
from logstore.compat.spark.predicates import INT64_MAX, Where
from logstore.compat.spark.work_unit import AbortedSpan, WorkUnit
from logstore.errors import CorruptFileError

if TYPE_CHECKING:
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.segment import KafkaSegment
    from logstore.segments.kafka.store import KafkaStore


Places = Mapping[tuple[str, int], int]


def partition_bounds(store: KafkaStore, options: ReadOptions, bound: Bound) -> Places:
    """Return the offset that `bound` means in every wanted partition; never an undecided one."""
    return {
        (topic, index): min(_resolved(partition, bound), _end(partition, options))
        for topic, partitions in store.topics().items()
        for index, partition in partitions.items()
        if options.wants(topic, index)
    }


def _end(partition: KafkaPartition, options: ReadOptions) -> int:
    """Return where reading must stop."""
    return partition.last_stable_offset if options.is_committed_only else partition.end_offset


def plan_units(store: KafkaStore, options: ReadOptions, where: Where) -> list[WorkUnit]:
    """
    Return the units that hold all wanted records, in order of topic, partition and offset.

    Raises:
        OptionError: a topic that the options name is not there.

    """
    units: list[WorkUnit] = []
    for partition in _wanted(store, options, where):
        units += _units(partition, *_span(partition, options, where), options, where)
        if store.was_clean:
            units += _unread_units(partition, options, where)
    return units


def plan_parts(store: KafkaStore, options: ReadOptions, where: Where) -> list[list[WorkUnit]]:
    """
    Return the units as those of :func:`plan_units`, shared out as the options divide ranges.

    Raises:
        OptionError: a topic that the options name is not there.

    """
    partitions = _wanted(store, options, where)
    by_place = {(one.topic, one.index): one for one in partitions}
    ranges = divided(
        [OffsetRange(one.topic, one.index, *_span(one, options, where)) for one in partitions],
        options.partition_count_min,
        options.records_per_partition_max,
    )
    parts = [
        list(_units(by_place[one.topic, one.partition], one.start, one.end, options, where))
        for one in ranges
    ]
    if store.was_clean:
        parts += [list(_unread_units(one, options, where)) for one in partitions]
    return [part for part in parts if part]


def _wanted(store: KafkaStore, options: ReadOptions, where: Where) -> list[KafkaPartition]:
    topics = store.topics()
    options.choice.check(topics)
    return [
        topics[topic][index]
        for topic in sorted(topics)
        for index in sorted(topics[topic])
        if options.wants(topic, index) and where.wants(topic, index)
    ]


def _span(partition: KafkaPartition, options: ReadOptions, where: Where) -> tuple[int, int]:
    """Return the offsets from and up to which records are wanted; there may be none."""
    start = _resolved(partition, options.start)
    end = min(_resolved(partition, options.end), _end(partition, options))
    return max(start, where.offset_min, partition.start_offset), min(end, where.offset_max + 1)


def _unread_units(
    partition: KafkaPartition, options: ReadOptions, where: Where
) -> Iterator[WorkUnit]:
    """
    Yield what stands behind the end of a log that was closed cleanly, if records there are wanted.

    Damage put the end there, and may hide any number of records: who reads it finds out.
    """
    active, end = partition.log.active, partition.end_offset
    if not active.unread_bytes or _end(partition, options) < end:
        return
    place = options.end.offsets.get((partition.topic, partition.index), LATEST)
    wanted_end = min(INT64_MAX if place < 0 else place, where.offset_max + 1)
    if wanted_end <= end or _resolved(partition, options.start) > end:
        return
    yield WorkUnit(
        active.path,
        partition.topic,
        partition.index,
        active.end_position,
        active.end_position + active.unread_bytes,
        end,
        min(wanted_end, INT64_MAX),
    )


def _units(
    partition: KafkaPartition, start: int, end: int, options: ReadOptions, where: Where
) -> Iterator[WorkUnit]:
    """Yield the units of one partition between two offsets."""
    if start >= end:
        return
    _check_replaced(partition)
    aborted = AbortedSweep(partition, start, end) if options.is_committed_only else None
    for segment in list(partition.log.segments.values()):
        if segment.next_offset <= start or segment.base_offset >= end or not segment.end_position:
            continue
        first = max(start, segment.base_offset)
        if where.has_times:
            if segment.largest_timestamp_ms() < where.timestamp_ms_min:
                continue
            first = max(first, _first_by_time(segment, where))
        spans = (
            () if aborted is None else aborted.spans_in(segment.base_offset, segment.next_offset)
        )
        stop = min(end, segment.next_offset)
        yield from _segment_units(partition, segment, first, stop, options.unit_bytes, spans)
        segment.release()  # a descriptor for each would soon be too many


def _check_replaced(partition: KafkaPartition) -> None:
    """
    Check that no replacement of segments was begun and not finished.

    Raises:
        CorruptFileError: one was: what it replaces may be gone.

    """
    for name in partition.files.unfinished:
        raise CorruptFileError(
            f"{partition.files.directory}/{name}",
            "replaces segments, but has not its name yet: a broker that starts finishes that",
        )


def _resolved(partition: KafkaPartition, bound: Bound) -> int:
    """Return the offset that a bound means in this partition."""
    topic, index = partition.topic, partition.index
    time_ms = bound.time_of(topic, index)
    if time_ms is not None:
        found = partition.offset_for_timestamp(time_ms)
        return bound.unmatched(topic, index, partition.end_offset) if found is None else found
    place = bound.offsets.get((topic, index), bound.everywhere)
    if place == EARLIEST:
        return partition.start_offset
    return partition.end_offset if place == LATEST else place


def _first_by_time(segment: KafkaSegment, where: Where) -> int:
    """Return an offset below which no record of the segment is young enough."""
    timestamp_ms, offset = segment.time_index.lookup(where.timestamp_ms_min - 1)
    return offset if 0 <= timestamp_ms < where.timestamp_ms_min else segment.base_offset


def _segment_units(
    partition: KafkaPartition,
    segment: KafkaSegment,
    start: int,
    end: int,
    unit_bytes: int,
    aborted: tuple[AbortedSpan, ...],
) -> Iterator[WorkUnit]:
    """Yield a unit for about every `unit_bytes` of the segment between two offsets."""
    # Of a segment that is read whole no file is opened: there may be a hundred thousand of them.
    position = 0 if start <= segment.base_offset else segment.locate(start)
    stop = segment.end_position if end >= segment.next_offset else segment.locate(end)
    if stop < segment.end_position and end < segment.next_offset:
        stop = _behind(segment, end, stop)
    stamp, begin = stamp_of(segment.path), position
    while position < stop:
        following = stop
        if position + unit_bytes < stop:
            entry = segment.offset_index.first_from_position(position + unit_bytes)
            following = stop if entry is None or entry[1] >= stop else entry[1]
        where = segment.path, partition.topic, partition.index, position, following
        is_alone = (position, following) == (begin, stop)
        yield WorkUnit(*where, start, end, aborted, stamp, is_alone)
        position = following


def _behind(segment: KafkaSegment, end: int, position: int) -> int:
    """Return the end of the batch at `position` if it starts below `end`: it has wanted records."""
    batch = segment.decode(position)
    if batch is None or batch.base_offset >= end:
        return position
    return position + batch.size_bytes


class AbortedSweep:
    """The aborted transactions of a partition, asked for segment by segment, in their order."""

    def __init__(self, partition: KafkaPartition, start: int, end: int) -> None:
        for segment in partition.log.segments.values():
            if segment.next_offset > start:
                segment.transaction_index.sanity_check()  # what it lacks would count as committed
        found = partition.aborted_transactions(start, end)
        spans = [AbortedSpan(one.producer_id, one.first_offset, one.last_offset) for one in found]
        self._coming = sorted(spans, key=lambda span: span.first_offset, reverse=True)
        self._open: list[AbortedSpan] = []

    def spans_in(self, start: int, end: int) -> tuple[AbortedSpan, ...]:
        """Return those that reach into ``[start, end)``; `start` never goes back."""
        while self._coming and self._coming[-1].first_offset < end:
            self._open.append(self._coming.pop())
        if not self._open:
            return ()
        self._open = [span for span in self._open if span.last_offset >= start]
        return tuple(sorted(self._open, key=lambda span: span.last_offset))
