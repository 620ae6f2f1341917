"""
Plain records to messages without columns in between: read once, packed from where they stand.

What is not plain (:mod:`~logstore.compat.spark.convert.plain_kernel`) goes the way of
:mod:`~logstore.compat.spark.convert.message_packing`, which makes the same messages of the same
records; damage, too, is found again there, and told.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.compat.spark.convert import plain_kernel
from logstore.compat.spark.convert.message_packing import head_template, message_version
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File
from logstore.segments.compiled.reused_memory import ReusedMemory

#: How much of a file one step reads: what is only measured stays in the caches, and a step in which
#: messages are made is worth what it costs besides.
_MEASURED_BYTES, _STEP_BYTES = 1024 * 1024, 4 * 1024 * 1024
#: of how many records and batches it takes note
_ROWS_MAX, _BATCHES_MAX = 64 * 1024, 4 * 1024
_CRC_START = 21


@attrs.frozen(eq=False, slots=False)
class PlainMessages:
    """
    Plain records of one partition where they stand in `source`, and what they are as messages.

    Works as :class:`~logstore.compat.spark.convert.message_packing.MessageBatch` does. The source
    is read over in the next step.
    """

    topic: str
    queue_id: int
    source: NDArray[np.uint8]
    table: NDArray[np.int64]
    #: where in the file the source begins
    file_position: int
    #: where the next step begins, and the first offset that may stand there
    next_position: int
    next_offset: int
    #: where messages are made
    memory: ReusedMemory

    def __len__(self) -> int:
        return int(self.table.shape[1])

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets of the records."""
        found: NDArray[np.int64] = self.table[plain_kernel.OFFSET]
        return found

    @property
    def timestamps_ms(self) -> NDArray[np.int64]:
        """Their times."""
        found: NDArray[np.int64] = self.table[plain_kernel.TIMESTAMP_MS]
        return found

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where the batch of each stands in its file."""
        found: NDArray[np.int64] = self.table[plain_kernel.POSITION] + self.file_position
        return found

    @property
    def rests(self) -> dict[int, bytes]:
        """What no message holds of the records, by row: nothing, as they are plain."""
        return {}

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each message has."""
        sizes = np.empty(len(self), dtype=np.int64)
        topic_bytes = message_version(self.topic).topic_length_bytes + len(self.topic)
        plain_kernel.measure_plain(self.table, topic_bytes, sizes)
        return sizes

    def pack(
        self,
        first: int,
        last: int,
        queue_offsets: NDArray[np.int64],
        store_timestamps_ms: NDArray[np.int64],
        physical_offset: int,
        physical_offsets: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        """
        Return the messages of rows ``[first, last)``, the first of which stands there.

        `physical_offsets` of these rows are set.
        """
        target = self.memory.array(int(self.sizes[first:last].sum()), np.uint8)
        plain_kernel.pack_plain(
            first,
            last,
            self.source,
            self.table,
            self.sizes,
            head_template(self.topic, self.queue_id),
            np.frombuffer(self.topic.encode(), dtype=np.uint8),
            message_version(self.topic).topic_length_bytes,
            queue_offsets,
            store_timestamps_ms,
            physical_offset,
            physical_offsets,
            target,
        )
        return target


def plain_messages(
    file: File,
    unit: WorkUnit,
    topic: str,
    memory: ReusedMemory,
    *,
    is_measured: bool,
    is_checked: bool,
) -> Iterator[PlainMessages]:
    """
    Yield the records of a unit step by step, up to the first that is not plain.

    With `is_checked` they end in front of a batch with a wrong CRC, too. Where the last step ends
    the rest begins.
    """
    position, end = unit.position, unit.end_position
    span, previous = (unit.start_offset, unit.end_offset - 1), unit.start_offset - 1
    step_bytes = _MEASURED_BYTES if is_measured else _STEP_BYTES
    window = memory.array(min(step_bytes, end - position), np.uint8)
    table = memory.array(plain_kernel.ROWS * _ROWS_MAX, np.int64)
    table = table.reshape(plain_kernel.ROWS, _ROWS_MAX)
    batches = np.empty((plain_kernel.BATCH_ROWS, _BATCHES_MAX), dtype=np.int64)
    is_odd = bool(unit.aborted)
    while position < end and not is_odd:
        found_bytes = file.read_into(position, window.data[: end - position])
        *numbers, is_odd = plain_kernel.scan_plain(
            window, found_bytes, span, previous, table, batches
        )
        done, rows, count, previous = map(int, numbers)
        if is_checked and (bad := _first_damaged(window, batches[:, :count])) is not None:
            done, is_odd = int(batches[plain_kernel.BATCH_START, bad]), True
            rows = int(np.searchsorted(table[plain_kernel.POSITION, :rows], done))
            previous = int(batches[plain_kernel.BATCH_PREVIOUS, bad])
        if done == 0:
            return
        following = position + done
        yield PlainMessages(
            topic,
            unit.partition,
            window,
            table[:, :rows],
            position,
            following,
            previous + 1,
            memory,
        )
        position = following


def _first_damaged(source: NDArray[np.uint8], batches: NDArray[np.int64]) -> int | None:
    """Return the first batch whose CRC is wrong."""
    view = source.data
    for index, (start, end, crc) in enumerate(batches[:3].T.tolist()):
        if crc32c(view[start + _CRC_START : end]) != crc:
            return index
    return None
