"""
Which part of a log a compaction may clean, and how much there is to gain.

::

    log start       first dirty       first uncleanable       log end
    |---- clean ----|----- cleanable -----|---- not yet ----------|

First dirty is where the last pass ended. Not yet: the active segment, the one with the last stable
offset and what is behind it, and the first segment with a record younger than
``min.compaction.lag.ms``.

Source: ``LogCleanerManager.cleanableOffsets``, ``LogToClean``.
"""

from __future__ import annotations

import logging

import attrs

from logstore.segments.kafka.config_keys import LONG_MAX
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment import KafkaSegment

_log = logging.getLogger(__name__)


@attrs.frozen
class Cleanable:
    """What a pass over one partition would find. Offsets are those of the drawing above."""

    partition: KafkaPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    #: a dirty segment is older than ``max.compaction.lag.ms``
    is_overdue: bool = False

    @property
    def total_bytes(self) -> int:
        """All bytes that a pass would read."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def dirty_ratio(self) -> float:
        """The part of the bytes that no pass has seen."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Tell whether a cleaner that looks for work takes this one."""
        if self.cleanable_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.partition.config.min_cleanable_dirty_ratio


def find_cleanable(partition: KafkaPartition, checkpoint: int | None, now_ms: int) -> Cleanable:
    """Return what a pass would find; `checkpoint` is where the last one ended."""
    first_dirty = _first_dirty(partition, checkpoint)
    active: KafkaSegment = partition.log.active
    bound = min(partition.last_stable_offset, active.base_offset)
    lag_ms = partition.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in segments_between(partition, first_dirty, active.base_offset):
            if segment.largest_timestamp_ms() > now_ms - lag_ms:
                bound = min(bound, segment.base_offset)
                break
    bound = max(first_dirty, bound)
    # A pass takes whole segments: up to the one that holds the bound.
    uncleanable = min(_floor(partition, bound), active.base_offset)
    clean = segments_between(partition, -1, first_dirty)
    dirty = segments_between(partition, min(first_dirty, uncleanable), uncleanable)
    return Cleanable(
        partition,
        first_dirty,
        uncleanable,
        sum(segment.end_position for segment in clean),
        sum(segment.end_position for segment in dirty),
        _is_overdue(partition, first_dirty, now_ms),
    )


def segments_between(partition: KafkaPartition, start: int, end: int) -> list[KafkaSegment]:
    """Return the segments from the one that holds `start` to the last that starts below `end`."""
    if start >= end:
        return []
    bases = partition.log.segments
    first = max(bases.bisect_right(start) - 1, 0)
    found: list[KafkaSegment] = list(bases.values()[first : bases.bisect_left(end)])
    return found


def _floor(partition: KafkaPartition, offset: int) -> int:
    """Return where the segment starts that holds `offset`."""
    segment = partition.log.find(offset)
    return partition.log.start_offset if segment is None else segment.base_offset


def _first_dirty(partition: KafkaPartition, checkpoint: int | None) -> int:
    start = partition.start_offset
    if checkpoint is None:
        return start
    if start <= checkpoint <= partition.end_offset:
        return checkpoint
    if checkpoint > start or not partition.config.is_deleting:
        _log.warning(
            "%s: the cleaner's checkpoint %s is not in the log %s; all of it counts as dirty",
            partition.files.directory,
            checkpoint,
            partition.span,
        )
    return start


def _is_overdue(partition: KafkaPartition, first_dirty: int, now_ms: int) -> bool:
    lag_ms = max(partition.config.max_compaction_lag_ms, 0)
    if lag_ms == LONG_MAX:
        return False
    for segment in segments_between(partition, first_dirty, partition.log.active.base_offset):
        batch = segment.decode(0) if segment.end_position else None
        if batch is not None and 0 < batch.max_timestamp_ms < now_ms - lag_ms:
            return True
    return False
