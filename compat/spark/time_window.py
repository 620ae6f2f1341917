"""
Which batches of a unit can hold records of a time window: told by their headers.

A header has the largest timestamp of its batch and that of its first record. A batch whose largest
is too old has nothing, that is certain. A batch whose first record is too young is passed over
too, as producers append in the order of time; where event times go back inside of a batch the
option ``timestampPruning=exact`` has it read all the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from logstore.compat.spark.predicates import Where
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES

# length, magic, base timestamp, max timestamp
_unpack = struct.Struct(">8xi4xb10xqq").unpack_from
_HEAD_BYTES = 43


def wanted_ranges(
    file: File, unit: WorkUnit, where: Where, is_exact: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield ``(position, end position)`` of runs of batches that may hold wanted records."""
    if not where.has_times:
        yield unit.position, unit.end_position
        return
    low, high = where.timestamp_ms_min, where.timestamp_ms_max
    position = start = unit.position
    while position < unit.end_position:
        head = file.read(position, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            break
        length, magic, base_ms, max_ms = _unpack(head)
        if magic != MAGIC or length < HEADER_BYTES - PREFIX_BYTES:
            break  # messages of before there were batches, or damage: whoever decodes will see
        following = position + PREFIX_BYTES + length
        if max_ms < low or (not is_exact and base_ms > high):
            if start < position:
                yield start, position
            start = following
        position = following
    if start < unit.end_position:
        yield start, unit.end_position
