"""
One queue of a topic with ``queue.type=BatchCQ``: 46 bytes for each batch.

Units stand densely: an offset of this log is the number of a unit, not a queue offset, and a queue
offset is found by search. (Java: ``BatchConsumeQueue``.)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from logstore.errors import StorageError
from logstore.segments.rocketmq.queues.unit_file import UnitRules, Witness
from logstore.segments.rocketmq.queues.unit_queue import QueueFileSpan, UnitQueue

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExtUnit

#: physical offset, record size, tags code, store time, first queue offset, count, compacted
#: offset (-1), reserved (0)
BATCH_UNIT = struct.Struct(">qiqqqhii")
BATCH_UNIT_BYTES = 46
RULES = UnitRules(BATCH_UNIT_BYTES, not_negative=(0, 28), positive=((8, 4), (36, 2)))
FILE_UNITS = 300_000


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


class BatchConsumeQueue(UnitQueue):
    """
    The units of one queue of batches; what is not said here is as in ``ConsumeQueue``.

    `max_physical_offset` is where the newest batch starts.
    """

    rules = RULES

    def __init__(
        self,
        host: Host,
        directory: str,
        topic: str,
        queue_id: int,
        *,
        file_size_bytes: int = FILE_UNITS * BATCH_UNIT_BYTES,
        is_clean: bool = True,
        is_writable: bool = True,
        witness: Witness | None = None,
    ) -> None:
        """`directory` is that of this one queue; it need not be there yet."""
        super().__init__(
            host,
            directory,
            topic,
            queue_id,
            file_size_bytes=file_size_bytes,
            size_setting="mapperFileSizeBatchConsumeQueue",
            is_clean=is_clean,
            is_writable=is_writable,
            witness=witness,
        )
        #: queue offsets that the units cover
        self._min_queue_offset = 0
        self._max_queue_offset = 0

    # where it is

    @property
    def min_queue_offset(self) -> int:
        """The first queue offset whose message is still there."""
        return self._min_queue_offset

    @property
    def max_queue_offset(self) -> int:
        """The queue offset after the last batch, buffered ones included."""
        return self._max_queue_offset

    @property
    def last_physical_offset(self) -> int:
        """Physical offset of the last unit, -1 if there is none."""
        return self._physical_offset(self._unit(self._end - 1)) if self._end > self._start else -1

    # writing

    def put(self, unit: BatchUnit) -> bool:
        """Take a unit into the buffer; False for one that is there or tells no queue offset."""
        if unit.queue_offset < 0 or unit.count < 0:
            return False  # a message that is no batch; Java drops it, too
        if unit.physical_offset <= self.max_physical_offset:
            return False
        if not unit.queue_offset and self._end:
            self._begin_anew()
        if self._end == self._start:
            self._min_queue_offset = unit.queue_offset
        self._buffer += unit.encode()
        self._end += 1
        self.max_physical_offset = unit.physical_offset
        self._max_queue_offset = unit.queue_offset + unit.count
        return True

    # reading

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return up to `count_max` units of one file; the first one holds `queue_offset`."""
        if not self._min_queue_offset <= queue_offset < self._max_queue_offset:
            return memoryview(b"")
        number = self._search(_first_queue_offset, queue_offset + 1) - 1
        return self._units(max(number, self._start), count_max)

    def units_to_file_end(self, queue_offset: int) -> int:
        """Return how many units there are from that queue offset to the end of its file."""
        number = max(self._search(_first_queue_offset, queue_offset + 1) - 1, self._start)
        return min(self._end - number, self.units_per_file - number % self.units_per_file)

    def queue_offset_for_time(self, timestamp_ms: int, *, is_upper: bool = False) -> int:
        """
        Return the first queue offset of the batch for a time (``getOffsetInQueueByTime``).

        That is the oldest batch stored at that time or later, of the last file that begins at or
        before it; where that file has none, its last batch. -1 in an empty queue. With `is_upper`
        it is what Java's search for an upper boundary comes upon: a newer batch, or -1, where
        none was stored at that time.
        """
        if self._end == self._start:
            return -1
        younger = self._search(_store_timestamp_ms, timestamp_ms + 1)
        number = self._start
        if younger > number:
            last_old = younger - 1
            file_start = last_old - last_old % self.units_per_file
            file_end = min(file_start + self.units_per_file, self._end)
            if younger >= file_end:
                number = file_end - 1
            elif is_upper:
                number = self._upper(file_start, file_end - 1, timestamp_ms)
            else:
                number = max(self._search(_store_timestamp_ms, timestamp_ms), file_start)
        return -1 if number < 0 else _first_queue_offset(self._unit(number))

    def _upper(self, low: int, high: int, timestamp_ms: int) -> int:
        """Return the number of a unit, -1 for none (``binarySearchRight``)."""
        while low <= high:
            middle = (low + high) // 2
            found_ms = _store_timestamp_ms(self._unit(middle))
            if middle == high:
                return middle if found_ms >= timestamp_ms else -1
            if middle == low:
                if found_ms >= timestamp_ms:
                    return middle
                low = middle + 1
            elif found_ms <= timestamp_ms:
                low = middle
            else:
                high = middle - 1
        return -1

    def ext_unit(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return None: there is no extension of a batch consume queue."""
        del address
        return None

    def queue_files(self) -> Sequence[QueueFileSpan]:
        """Return the files that hold units, oldest first, by the queue offsets in them."""
        with suppress(OSError, StorageError):  # what waits is not in a file then
            self.write()
        if self._queue is None:
            return []
        found: list[QueueFileSpan] = []
        for file in self._queue.files():
            if file.end_position:
                first = BatchUnit.decode(file.unit(file.base_offset))
                last = BatchUnit.decode(file.unit(file.next_offset - 1))
                end = last.queue_offset + last.count
                found.append(QueueFileSpan(first.queue_offset, end, file.largest_timestamp_ms()))
        return found

    def roll_next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the file after the one with `queue_offset`."""
        for file in self.queue_files():
            if queue_offset < file.end_queue_offset:
                return file.end_queue_offset
        return self._max_queue_offset

    # recovery

    def _learn(self) -> None:
        if self._end == self._start:
            self._min_queue_offset = self._max_queue_offset = 0
            return
        last = BatchUnit.decode(self._unit(self._end - 1))
        self.max_physical_offset = last.physical_offset
        self._max_queue_offset = last.queue_offset + last.count
        self._min_queue_offset = BatchUnit.decode(self._unit(self._start)).queue_offset

    def _forget(self, physical_offset: int) -> None:
        self.max_physical_offset = physical_offset - 1

    def truncate_dirty(self, physical_offset: int) -> None:
        """Let go of the units that lead to `physical_offset` or above."""
        super().truncate_dirty(physical_offset)
        if self._end == self._start:
            self._learn()

    def correct_min(self, min_physical_offset: int) -> None:
        """
        Move `min_queue_offset` to the first batch whose message is there.

        A queue whose batches are all gone, with their file perhaps, has its minimum at its end.
        """
        number = self._search(self._physical_offset, min_physical_offset)
        if number == self._end:
            self._min_queue_offset = self._max_queue_offset
        else:
            self._min_queue_offset = BatchUnit.decode(self._unit(number)).queue_offset


def _store_timestamp_ms(unit: bytes) -> int:
    return int.from_bytes(unit[20:28], "big", signed=True)


def _first_queue_offset(unit: bytes) -> int:
    return int.from_bytes(unit[28:36], "big", signed=True)
