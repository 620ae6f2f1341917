"""
One queue of a topic with ``queue.type=BatchCQ``: 46 bytes for each batch.

Units stand densely: an offset of this log is the number of a unit, not a queue offset, and a queue
offset is found by search. (Java: ``BatchConsumeQueue``.)
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import Host

#: physical offset, record size, tags code, store time, first queue offset, count, compacted
#: offset (-1), reserved (0)
BATCH_UNIT = struct.Struct(">qiqqqhii")
BATCH_UNIT_BYTES = 46


@attrs.frozen
class BatchUnit:
    """One unit: a batch of `count` messages whose first has queue offset `queue_offset`."""

    physical_offset: int
    size_bytes: int
    tags_code: int
    store_timestamp_ms: int
    queue_offset: int
    count: int

    @staticmethod
    def decode(data: bytes | memoryview, position: int = 0) -> BatchUnit:
        """Decode the 46 bytes at `position`."""
        return BatchUnit(*BATCH_UNIT.unpack_from(data, position)[:6])

    def encode(self) -> bytes:
        """Return the 46 bytes."""
        return BATCH_UNIT.pack(
            self.physical_offset,
            self.size_bytes,
            self.tags_code,
            self.store_timestamp_ms,
            self.queue_offset,
            self.count,
            -1,
            0,
        )


class BatchConsumeQueue:
    """The units of one queue of batches; what is not said here is as in ``ConsumeQueue``."""

    unit_size_bytes = 46

    def __init__(
        self,
        host: Host,
        directory: str,
        topic: str,
        queue_id: int,
        *,
        file_size_bytes: int = 300_000 * 46,
        is_clean: bool = True,
        is_writable: bool = True,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        #: physical offset of the newest unit, -1 without one
        self.max_physical_offset = -1
        raise NotImplementedError

    def put(self, unit: BatchUnit) -> bool:
        """Take a unit into the buffer; False for one that is there or tells no queue offset."""
        raise NotImplementedError

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return up to `count_max` units; the first one holds `queue_offset`."""
        raise NotImplementedError
