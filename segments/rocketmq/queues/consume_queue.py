"""
One queue of a topic: 20 bytes for each of its messages, in queue order.

An offset of this log is a unit, the *queue offset*; the name of a file is its first unit's byte.
(Java: ``ConsumeQueue``.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from logstore.errors import StorageError
from logstore.segments.rocketmq.queues.consume_queue_ext import is_ext_address
from logstore.segments.rocketmq.queues.consume_queue_unit import PRE_BLANK, UNIT, UNIT_BYTES
from logstore.segments.rocketmq.queues.unit_file import UnitRules, UnitRun, Witness
from logstore.segments.rocketmq.queues.unit_queue import Queue, QueueFileSpan, UnitQueue

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import Host
    from logstore.segmented_log import FlushTask
    from logstore.segments.rocketmq.queues.consume_queue_ext import (
        ConsumeQueueExt,
        ConsumeQueueExtUnit,
    )

_log = logging.getLogger(__name__)

FILE_UNITS = 300_000
#: a unit leads somewhere, and to something
RULES = UnitRules(UNIT_BYTES, not_negative=(0,), positive=((8, 4),))
_pack = UNIT.pack
#: how many units of an extension's addresses are looked through in one go
_STEP_UNITS = 10_000


class ConsumeQueue(UnitQueue):
    """
    The units of one queue.

    Raises, on construction, what the files' load rules say (see :class:`UnitQueue`).
    """

    rules = RULES

    def __init__(
        self,
        host: Host,
        directory: str,
        topic: str,
        queue_id: int,
        *,
        file_size_bytes: int = FILE_UNITS * UNIT_BYTES,
        is_clean: bool = True,
        is_writable: bool = True,
        ext: ConsumeQueueExt | None = None,
        witness: Witness | None = None,
    ) -> None:
        """
        `directory` is that of this one queue; it need not be there yet.

        `max_physical_offset` says that everything of the commit log below it is in the queue
        already (``maxPhysicOffset``).
        """
        super().__init__(
            host,
            directory,
            topic,
            queue_id,
            file_size_bytes=file_size_bytes,
            size_setting="mappedFileSizeConsumeQueue",
            is_clean=is_clean,
            is_writable=is_writable,
            witness=witness,
        )
        self.ext = ext
        #: the flush of the extension that is under way
        self._ext_task: FlushTask | None = None
        self._min = 0

    # where it is

    @property
    def min_queue_offset(self) -> int:
        """The first queue offset whose message is still there (``minLogicOffset / 20``)."""
        return max(self._min, self._start)

    @property
    def max_queue_offset(self) -> int:
        """The queue offset after the last unit, buffered ones included."""
        return self._end

    @property
    def last_physical_offset(self) -> int:
        """Physical offset of the last unit, -1 if there is none (``getLastOffset``)."""
        return self._physical_offset(self._unit(self._end - 1)) if self._end > self._start else -1

    # writing

    def put(self, physical_offset: int, size_bytes: int, tags_code: int, queue_offset: int) -> bool:
        """
        Take a unit into the buffer; what is there already is passed over (False).

        :meth:`write` puts all that is buffered into the file in one system call. Reads see what is
        buffered. The rules for a unit that comes out of order are Java's.
        """
        end = physical_offset + size_bytes
        if end <= self.max_physical_offset:
            return False
        if queue_offset != self._end and not self._accepts(queue_offset):
            return False
        self._buffer += _pack(physical_offset, size_bytes, tags_code)
        self._end += 1
        self.max_physical_offset = end
        return True

    def put_run(self, units: Buffer, queue_offset: int, next_physical_offset: int) -> None:
        """Take the units of messages that follow one another: `next_physical_offset` is behind."""
        if queue_offset != self._end and not self._accepts(queue_offset):
            return
        count = memoryview(units).nbytes // UNIT_BYTES
        self._buffer += units
        self._end += count
        self.max_physical_offset = next_physical_offset

    def _accepts(self, queue_offset: int) -> bool:
        """Tell whether a unit that is not the next one is taken, in the place of the next one."""
        if not queue_offset:
            self._begin_anew()
            self._min = 0
            return True
        is_without_messages = self._end in (self._start, self._min)
        if is_without_messages and queue_offset > self._end:
            self._begin_at(queue_offset)
            return True
        if queue_offset < self._end:
            return False  # built a second time
        _log.error(
            "%s-%d: the unit for queue offset %d comes when %d is next, and is written there, as "
            "Java does: messages are missing in the queue",
            self.topic,
            self.queue_id,
            queue_offset,
            self._end,
        )
        return True

    def _begin_at(self, queue_offset: int) -> None:
        """
        Let an empty queue begin anywhere; what lies before is filled up (``fillPreBlank``).

        So, too, one whose messages are all gone: a crash has cost it units of some that are gone as
        well. Java puts the next unit in the place of the first of those, and all others behind it.
        """
        self._buffer.clear()
        if self._queue is not None:
            self._remove_files(self._queue)
        self._end = self._min = queue_offset

    def _fill_up(self, queue: Queue, count: int) -> None:
        queue.append(UnitRun(queue.next_offset, PRE_BLANK * count, UNIT_BYTES))

    # reading

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """
        Return up to `count_max` units from `queue_offset` on, of one file and the buffer.

        Empty where there is none; fewer where a file ends.
        """
        if queue_offset < self._min:
            return memoryview(b"")  # filled up, or its message is gone
        return self._units(queue_offset, count_max)

    def ext_unit(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return what the consume queue extension says at `address` (a tags code), or None."""
        return None if self.ext is None else self.ext.get(address)

    def queue_files(self) -> Sequence[QueueFileSpan]:
        """Return the files that hold units, oldest first."""
        with suppress(OSError, StorageError):  # what waits is not in a file then
            self.write()
        if self._queue is None:
            return []
        return [
            QueueFileSpan(
                file.base_offset, min(file.next_offset, self._end), file.largest_timestamp_ms()
            )
            for file in self._queue.files()
            if file.end_position
        ]

    def roll_next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the file after the one with `queue_offset`."""
        return queue_offset + self.units_per_file - queue_offset % self.units_per_file

    # recovery

    def recover(self, durable_until: int | None = None) -> None:
        """Find the end of the queue and of its extension (``recover``)."""
        super().recover(durable_until)
        if self.ext is not None:
            self.ext.recover()
            self._cut_ext()

    def _learn(self) -> None:
        if self._end > self._start:
            unit = self._unit(self._end - 1)
            physical_offset, size_bytes, _ = UNIT.unpack(unit)
            # Where a crash left nothing but what was filled up, the queue knows of no message.
            self.max_physical_offset = -1 if unit == PRE_BLANK else physical_offset + size_bytes

    def _physical_offset(self, unit: bytes) -> int:
        return -1 if unit[:UNIT_BYTES] == PRE_BLANK else super()._physical_offset(unit)

    def _forget(self, physical_offset: int) -> None:
        self.max_physical_offset = physical_offset

    def truncate_dirty(self, physical_offset: int) -> None:
        """Let go of the units that lead to `physical_offset` or above."""
        super().truncate_dirty(physical_offset)
        if self.ext is not None:
            self._cut_ext()

    def _cut_ext(self) -> None:
        """Let go of what stands in the extension behind the last unit that leads there."""
        assert self.ext is not None, "only asked of a queue that has one"
        start = self._start if self._queue is None else self._queue.last(3)[0].base_offset
        end = self._end
        while end > start:
            in_file = (end - 1) // self.units_per_file * self.units_per_file
            first = max(start, end - _STEP_UNITS, in_file)
            units = list(UNIT.iter_unpack(self._units(first, end - first)))
            for _, _, tags_code in reversed(units):
                if is_ext_address(tags_code):
                    self.ext.truncate_above(tags_code)
                    return
            end = first

    def settle(self) -> None:
        """Zero, durably, what a recovery left behind the end, in the extension too."""
        super().settle()
        if self.ext is not None:
            self.ext.settle()

    def correct_min(self, min_physical_offset: int) -> None:
        """
        Move `min_queue_offset` to the first unit whose message is there.

        A queue whose messages are all gone has its minimum at its end.
        """
        if self._end == self._start:
            return
        self._min = self._search(self._physical_offset, min_physical_offset)
        if self.ext is not None and self._min < self._end:
            tags_code = UNIT.unpack(self._unit(self._min))[2]
            if is_ext_address(tags_code):
                self.ext.truncate_below(tags_code)

    # lasting

    def begin_flush(self) -> FlushTask:
        """Return what must be synced: the extension, then the units that lead there."""
        task = super().begin_flush()
        self._ext_task = ext_task = None if self.ext is None else self.ext.begin_flush()
        if ext_task is None:
            return task
        first = task.first

        def run() -> None:
            if first is not None:
                first()
            ext_task.run()

        return task._replace(first=run)

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        super().end_flush(task)
        if self.ext is not None and self._ext_task is not None:
            self.ext.end_flush(self._ext_task)
            self._ext_task = None

    def destroy(self) -> None:
        """Remove the queue with all its files; refused by the disk, it is empty until a start."""
        self._min = 0
        super().destroy()
        if self.ext is not None:
            self.ext.destroy()

    def close(self) -> None:
        """Write what is buffered and let go of the files."""
        super().close()
        if self.ext is not None:
            self.ext.close()
