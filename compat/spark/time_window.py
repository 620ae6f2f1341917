"""
Which batches of a unit can hold records of a time window: told by their headers.

A header has the largest timestamp of its batch and that of its first record. A batch whose largest
is too old has nothing, that is certain. How far times go back inside of a batch no header says: a
batch is passed over where its first record is younger than the window by more than `slack_ms`,
and only in units that are too large to be read for certainty's sake.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from logstore.compat.spark.predicates import INT64_MAX, Where
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES

# length, magic, base timestamp, max timestamp
_unpack = struct.Struct(">8xi4xb10xqq").unpack_from
_HEAD_BYTES = 43
#: a unit up to this is read whole behind the window
_SMALL_UNIT_BYTES = 16 * 1024 * 1024


def wanted_ranges(
    file: File, unit: WorkUnit, where: Where, slack_ms: int
) -> Iterator[tuple[int, int]]:
    """
    Yield ``(position, end position)`` of runs of batches that may hold wanted records.

    A negative `slack_ms` passes nothing over that is not certain.
    """
    if not where.has_times:
        yield unit.position, unit.end_position
        return
    low, high = where.timestamp_ms_min, INT64_MAX
    if slack_ms >= 0 and unit.size_bytes > _SMALL_UNIT_BYTES:
        high = min(high, where.timestamp_ms_max + slack_ms)
    position = start = unit.position
    while position < unit.end_position:
        head = file.read(position, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            break
        length, magic, base_ms, max_ms = _unpack(head)
        if magic != MAGIC or length < HEADER_BYTES - PREFIX_BYTES:
            break  # messages of before there were batches, or damage: whoever decodes will see
        following = position + PREFIX_BYTES + length
        if following > unit.end_position:
            break
        if max_ms < low or base_ms > high:
            if start < position:
                yield start, position
            start = following
        position = following
    if start < unit.end_position:
        yield start, unit.end_position
