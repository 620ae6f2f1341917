"""
What a consume queue and a batch consume queue have in common: units, buffered and in files.

Units are put into a buffer, and the buffer into the file with one system call; reads see both.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.retention import RetentionPolicy
from logstore.segmented_log import FlushTask
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.files.whole_removal import remove_whole
from logstore.segments.rocketmq.queues.unit_file import UnitFile, UnitRules, UnitRun, Witness
from logstore.span import Span

if TYPE_CHECKING:
    from logstore.host import FileSystem, Host

_log = logging.getLogger(__name__)

Queue = MappedFileQueue[UnitRun, UnitFile]
#: with how many of the last files a recovery begins
_FILES_RECOVERED = 3


@attrs.frozen
class QueueFileSpan:
    """One file of a queue: the queue offsets ``[first, end)``, last written at `modified_ms`."""

    first_queue_offset: int
    end_queue_offset: int
    modified_ms: int


class UnitQueue(ABC):
    """
    The units of one queue, by number.

    Raises, on construction:
        CorruptFileError: a file has not the configured size, or a strange name; names the file.
        MissingSegmentError: the files do not follow one another.
    """

    #: what is possible in a unit
    rules: UnitRules

    def __init__(
        self,
        host: Host,
        directory: str,
        topic: str,
        queue_id: int,
        *,
        file_size_bytes: int,
        size_setting: str,
        is_clean: bool = True,
        is_writable: bool = True,
        witness: Witness | None = None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        self.is_writable = is_writable
        self.unit_size_bytes = self.rules.size_bytes
        #: Java rounds the configured size up to whole units
        units = -(-file_size_bytes // self.unit_size_bytes)
        self.units_per_file = units
        #: what the queue knows of the commit log; -1 while it knows nothing
        self.max_physical_offset = -1
        #: the recovery found something behind its end that is no unit, nor nothing
        self.is_cut = False
        self._fs = host.fs
        self._witness = witness
        self._directory = MappedFileDirectory(
            host.fs,
            directory,
            self._make_file,
            units * self.unit_size_bytes,
            offset_bytes=self.unit_size_bytes,
            size_setting=size_setting,
            is_clean=is_clean,
            is_writable=is_writable,
            defers_first_sync=True,
        )
        self._queue: Queue | None = None
        #: the one of which a flush is under way
        self._flushed_queue: Queue | None = None
        self._buffer: bytearray = bytearray()
        #: number of the next unit, buffered ones counted
        self._end: int = 0

    def _make_file(
        self, fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
    ) -> UnitFile:
        del offset_bytes  # the rules tell
        return UnitFile(fs, path, base_offset, size_bytes, self.rules, self._witness)

    # where it is

    @property
    def flushed_where(self) -> int:
        """Everything below this unit is durable."""
        return 0 if self._queue is None else self._queue.recovery_point

    @property
    def has_remains(self) -> bool:
        """Tell whether a recovery left units behind the end."""
        return self._queue is not None and self._queue.has_remains

    @property
    def _start(self) -> int:
        """Number of the first unit that stands in a file or in the buffer."""
        return self._written_end if self._queue is None else self._queue.start_offset

    @property
    def written_span(self) -> Span:
        """Numbers of the units that stand in files."""
        return Span(self._start, self._written_end)

    @property
    def unwritten_units(self) -> bytes:
        """The units behind them: those that are buffered, as after a recovery that only reads."""
        return bytes(self._buffer)

    @property
    def _written_end(self) -> int:
        return self._end - len(self._buffer) // self.unit_size_bytes

    # writing

    def write(self) -> None:
        """
        Put what is buffered into the file.

        Raises:
            WriteFailedError: the disk refused; the units stay in the buffer.

        """
        buffer = self._buffer
        if not buffer:
            return
        queue = self._queue
        if queue is None:
            queue = self._create(self._written_end)
        lacking = self._written_end - queue.active.next_offset
        if lacking:  # of a first file, and of one where the disk refused it before
            self._fill_up(queue, lacking)
        unit_bytes = self.unit_size_bytes
        while buffer:
            if queue.active.is_full:
                self._settle_first(queue)
                queue.roll()
            active = queue.active
            data = bytes(buffer[: active.file_size_bytes - active.end_position])
            queue.append(UnitRun(active.next_offset, data, unit_bytes))
            del buffer[: len(data)]

    def _settle_first(self, queue: Queue) -> None:
        """
        Make the first file durable before there is a second one, unless a flush did.

        It was made without a sync: a power loss could leave it short in front of the other, which
        no start would take.
        """
        first = queue.active
        if queue.recovery_point <= first.base_offset == queue.start_offset:
            first.flush()
            self._directory.sync_names()

    def _begin_anew(self) -> None:
        """
        Let go of all units: a first message behind others is one of a topic that was made anew.

        The log has those of the deleted topic still, and a recovery dispatches them once more. Java
        keeps their units, and those of the new topic's messages have no place behind them.
        """
        _log.warning(
            "%s-%d: begins anew, behind %d messages of a topic of that name that was deleted",
            self.topic,
            self.queue_id,
            self._end - self._start,
        )
        self._buffer.clear()
        if self._queue is not None:
            self._remove_files(self._queue)
        self._end = 0

    def _create(self, number: int) -> Queue:
        """Create the first file, for a queue that goes on with unit `number`."""
        start = number - number % self.units_per_file
        self._queue = queue = Queue(self._directory, start_offset=start)
        return queue

    def _fill_up(self, queue: Queue, count: int) -> None:
        """Fill the first `count` units of a first file, for a queue that may begin anywhere."""
        del queue
        assert count == 0, f"{self.directory}: only a consume queue begins at any number"

    # reading

    def _units(self, number: int, count_max: int) -> memoryview:
        """Return up to `count_max` units of one file, from `number` on."""
        queue = self._queue
        if queue is not None and not self._buffer:
            active = queue.active
            index, left = number - active.base_offset, active.next_offset - number
            if index >= 0 and left >= 0:  # the usual case: nothing waits, and it is the last file
                count, unit_bytes = min(count_max, left), self.unit_size_bytes
                return memoryview(active.file.read(index * unit_bytes, count * unit_bytes))
        end = self._end
        if number >= end or number < self._start:
            return memoryview(b"")
        in_file = self.units_per_file - number % self.units_per_file
        count = min(count_max, end - number, in_file)
        unit_bytes = self.unit_size_bytes
        written = self._written_end
        stored = b""
        if number < written and self._queue is not None:
            file = self._queue.find(number)
            assert file is not None, "a number from the start on is in a file"
            position = (number - file.base_offset) * unit_bytes
            stored = file.file.read(position, min(count, written - number) * unit_bytes)
        if number + count <= written:
            return memoryview(stored)
        first = max(0, number - written) * unit_bytes
        last = (number + count - written) * unit_bytes
        return memoryview(stored + self._buffer[first:last])

    def _unit(self, number: int) -> bytes:
        return bytes(self._units(number, 1))

    def _search(self, key: Callable[[bytes], int], value: int) -> int:
        """Return the number of the first unit whose key is `value` or more; keys go up."""
        start = self._start
        return start + bisect_left(
            range(start, self._end), value, key=lambda number: key(self._unit(number))
        )

    # recovery

    def recover(self, durable_until: int | None = None) -> None:
        """
        Find the end of the queue, from its third-last file on (``recover``).

        `durable_until` is the last physical offset to which all units are on the disk: with it, no
        file that a power loss may have cost units is passed over, however many there are.
        What stands behind the end stays in the file until the next append.
        """
        bases = self._directory.base_offsets()
        if not bases:
            return
        was_clean = self._directory.is_clean
        self._directory.is_clean = False  # the scan of this recovery is the only one
        start = bases[-_FILES_RECOVERED:][0]
        if durable_until is not None:
            start = self._durable_start(bases, durable_until)
        queue = Queue(self._directory, start)
        self._queue = queue
        self._end = queue.next_offset
        outcome = queue.recovery
        if outcome is not None and not outcome.is_clean:
            self.is_cut = True
            _log.warning(
                "%s-%d: ends at unit %d: %s", self.topic, self.queue_id, self._end, outcome.reason
            )
        elif was_clean:
            queue.trust()  # or a stop would sync what nobody wrote to, queue by queue
        self._learn()
        self.release()  # a store has thousands of queues, and most are quiet

    def _durable_start(self, bases: Sequence[int], durable_until: int) -> int:
        """Return a file before which all is durable, the third-last or an older one."""
        for base in reversed(bases[: 1 - _FILES_RECOVERED]):
            unit = self._first_unit(base)
            if self.rules.count_valid(unit) and self._physical_offset(unit) <= durable_until:
                return base
        return bases[0]

    def _first_unit(self, base: int) -> bytes:
        file = self._fs.open(self._directory.path(base), writable=False)
        try:
            return file.read(0, self.unit_size_bytes)
        finally:
            file.close()

    @abstractmethod
    def _learn(self) -> None:
        """Take `max_physical_offset` and the like from the units that are there."""

    def _physical_offset(self, unit: bytes) -> int:
        """Return where in the commit log the unit leads."""
        return int.from_bytes(unit[:8], "big", signed=True)

    def truncate_dirty(self, physical_offset: int) -> None:
        """
        Let go of the units that lead to `physical_offset` or above (``truncateDirtyLogicFiles``).

        Files of nothing else go; in the last one the units stay on disk until the next append.
        """
        self._forget(physical_offset)
        queue = self._queue
        if queue is None and not self._buffer:
            return
        self.write()
        end = self._search(self._physical_offset, physical_offset)
        queue = self._queue
        assert queue is not None, "what was buffered is written"
        if end <= queue.start_offset:
            self._remove_files(queue)
            return
        queue.leave_behind(end, keeps_empty=False)
        self._end = end
        self._learn()

    @abstractmethod
    def _forget(self, physical_offset: int) -> None:
        """Set `max_physical_offset` for a queue of which no unit may be left."""

    def _remove_files(self, queue: Queue) -> None:
        for file in reversed(queue.files()):
            self._directory.remove(file)
            self._fs.sync_directory(self.directory)
        self._queue = None
        self._end = 0

    def settle(self) -> None:
        """
        Zero, durably, what a recovery left behind the end.

        The store calls this for every queue before the first append after a recovery: units that
        lead beyond the log's end must not come back when the log has grown past them.
        """
        if self._queue is not None and self._queue.has_remains:
            self._queue.settle_remains()

    # lasting

    def needs_flush(self, least_pages: int = 0) -> bool:
        """Tell whether so many pages (0: anything) that were written wait for a flush."""
        return self._queue is not None and self._queue.needs_flush(least_pages)

    def begin_flush(self) -> FlushTask:
        """Return what must be synced of what is in files; only where :meth:`needs_flush`."""
        assert self._queue is not None, "a queue without files needs no flush"
        self._flushed_queue = self._queue
        return self._queue.begin_flush()._replace(first=self._directory.sync_names)

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        if self._queue is not None and self._queue is self._flushed_queue:
            self._queue.end_flush(task)

    def flush(self, least_pages: int = 0) -> bool:
        """
        Write, and sync if that many pages wait (0: anything); tell whether it was done.

        Raises:
            OSError: the disk refused.
            WriteFailedError: the disk refused, now or earlier.

        """
        self.write()
        if not self.needs_flush(least_pages):
            return False
        (task := self.begin_flush()).run()
        self.end_flush(task)
        return True

    def delete_below(self, min_physical_offset: int) -> int:
        """Remove leading files of which every unit leads below; never the last one. Count them."""
        queue = self._queue
        if queue is None:
            return 0
        start = queue.start_offset
        for file in queue.files()[:-1]:
            if self._physical_offset(file.unit(file.limit_offset - 1)) >= min_physical_offset:
                break
            start = file.limit_offset
        removed: Sequence[UnitFile] = queue.retain(RetentionPolicy(), 0, start)
        self.correct_min(min_physical_offset)
        return len(removed)

    @abstractmethod
    def correct_min(self, min_physical_offset: int) -> None:
        """Move the smallest queue offset to the first unit whose message is there."""

    def release(self) -> None:
        """Let go of the file handles; the next use opens them again."""
        if self._queue is not None:
            for file in self._queue.files():
                file.release()

    def destroy(self) -> None:
        """
        Remove the queue with all its files, durably.

        It may be the one that made the folders in which others stand by now, and owes their names.
        """
        self._directory.sync_names()
        self._buffer.clear()
        if self._queue is not None:
            self._queue.abandon()
            self._queue = None
        self._end = 0
        remove_whole(self._fs, self.directory)

    def close(self) -> None:
        """Write what is buffered and let go of the files."""
        if self.is_writable:
            self.write()
        if self._queue is not None:
            self._queue.close()
