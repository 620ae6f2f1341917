"""
The timer log: the units of all slots in the order in which they came.

An offset of this log is a byte, the *timer offset*. Files of one size under ``timerlog``, named as
those of the commit log; a unit goes into a file if a BLANK fits behind it. (``TimerLog``)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.errors import CorruptEntryError, WriteFailedError
from logstore.retention import RetentionPolicy
from logstore.segments.rocketmq.files.mapped_file import MappedFile
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.timer.timer_unit import (
    BLANK,
    BLANK_MAGIC,
    TIMER_UNIT_BYTES,
    TimerUnit,
    is_blank,
)

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segment import Draft
    from logstore.segmented_log import FlushTask

__all__ = ["FILE_BYTES", "TimerLog", "TimerLogFile", "TimerUnitEntry"]

FILE_BYTES = 100 * 1024 * 1024
_STEP_BYTES = TIMER_UNIT_BYTES * 20_000


@attrs.frozen
class TimerUnitEntry:
    """Units in a row at their place in the log; draft and entry of the core in one."""

    data: bytes
    base_offset: int = 0

    max_timestamp_ms = -1

    @property
    def size_bytes(self) -> int:
        """How many bytes they take."""
        return len(self.data)

    @property
    def offset_count(self) -> int:
        """The same: an offset is a byte."""
        return len(self.data)

    @property
    def next_offset(self) -> int:
        """The timer offset behind them."""
        return self.base_offset + len(self.data)

    def stamped(self, base_offset: int) -> TimerUnitEntry:
        """Return the units at their place."""
        return TimerUnitEntry(self.data, base_offset)


_ONE_UNIT = TimerUnitEntry(bytes(TIMER_UNIT_BYTES))


class TimerLogFile(MappedFile[TimerUnitEntry]):
    """One file of the timer log. It can be made again from the timer topic: nothing is kept."""

    keeps_remains_aside = False
    may_end_padded = True

    def decode(self, position: int) -> TimerUnitEntry | None:
        """Return the unit at `position`, None at a BLANK and where nothing was written."""
        data = self.file.read(position, TIMER_UNIT_BYTES)
        if position >= self.end_position or is_blank(data):
            return None
        return self._entry(data, position)

    def is_genuine(self, timer_offset: int, data: bytes) -> bool:  # noqa: ARG002
        """
        Tell whether a unit is one that was written there.

        Units carry no checksum: whatever is possible is taken, unless a subclass knows more.
        """
        return TimerUnit.decode(data) is not None

    def _entry(self, data: bytes, position: int) -> TimerUnitEntry | None:
        if self.is_genuine(self.base_offset + position, data):
            return TimerUnitEntry(data, self.base_offset + position)
        if any(data):
            raise CorruptEntryError(self.path, position, f"{data[:20].hex()} begins no timer unit")
        return None

    def has_room_for(self, draft: Draft[TimerUnitEntry]) -> bool:
        """A BLANK must fit behind it."""
        left_bytes = self.file_size_bytes - self.end_position
        return draft.size_bytes + BLANK.size <= left_bytes and not self.is_padded

    def observe(self, entry: TimerUnitEntry, position: int) -> None:
        """Keep nothing: slots stand in the wheel."""

    def scan(self) -> None:
        """Move the end behind every valid unit; a BLANK fills the file."""
        while self.end_position < self.file_size_bytes:
            data = self.file.read(self.end_position, _STEP_BYTES)
            for position in range(0, len(data), TIMER_UNIT_BYTES):
                if is_blank(data, position):
                    self._fill()
                    return
                unit = data[position : position + TIMER_UNIT_BYTES]
                if not self.is_genuine(self.next_offset, unit):
                    self._entry(unit, self.end_position)  # raises, unless nothing was written
                    return
                self.end_position += TIMER_UNIT_BYTES
                self.next_offset += TIMER_UNIT_BYTES

    def pad(self) -> None:
        """
        Fill the file with a BLANK, so that the log goes on in the next one.

        Raises:
            WriteFailedError: the disk refused.

        """
        if self.is_padded or self.end_position == 0:
            return
        if self.has_remains:
            self.settle_remains()
        position = self.end_position
        data = BLANK.pack(self.file_size_bytes - position, 0, BLANK_MAGIC)
        try:
            self.file.write(position, data)
        except OSError as error:
            self._undo_write(position, error)
        self._fill()

    def _fill(self) -> None:
        self.is_padded = True
        self.next_offset = self.limit_offset


class TimerLog:
    """
    All files of the timer log.

    Raises, on construction, what the load rules say (CorruptFileError names the file).
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        *,
        file_size_bytes: int = FILE_BYTES,
        is_writable: bool = True,
    ) -> None:
        self.directory = directory
        self.file_size_bytes = file_size_bytes
        self._host = host
        self._is_writable = is_writable
        self._queue: MappedFileQueue[TimerUnitEntry, TimerLogFile] | None = None
        if self._family().base_offsets():
            self._open()

    def _family(self) -> MappedFileDirectory[TimerLogFile]:
        return MappedFileDirectory(
            self._host.fs,
            self.directory,
            TimerLogFile,
            self.file_size_bytes,
            size_setting="mappedFileSizeTimerLog",
            is_writable=self._is_writable,
        )

    def _open(self) -> MappedFileQueue[TimerUnitEntry, TimerLogFile]:
        # Its own last bytes say where it ends: units are checked one by one, clean stop or not.
        self._queue = MappedFileQueue(self._family())
        return self._queue

    # where it is

    @property
    def min_timer_offset(self) -> int:
        """Where the oldest file starts."""
        return 0 if self._queue is None else self._queue.start_offset

    @property
    def max_timer_offset(self) -> int:
        """Where the next unit will stand."""
        return 0 if self._queue is None else self._queue.next_offset

    @property
    def flushed_where(self) -> int:
        """Everything below is durable."""
        return 0 if self._queue is None else self._queue.recovery_point

    def reserve(self, count: int) -> tuple[int, int]:
        """
        Return where the next unit will stand, and how many of `count`, one at least, go there.

        The others go into the next file.

        Raises:
            WriteFailedError: the disk refused; the log is as before.

        """
        queue = self._queue
        if queue is None:
            try:
                queue = self._open()
            except OSError as error:
                raise WriteFailedError(f"{self.directory}: {error.strerror or error}") from error
        timer_offset = queue.reserve(_ONE_UNIT)
        room_bytes = self.file_size_bytes - queue.active.end_position - BLANK.size
        return timer_offset, min(count, room_bytes // TIMER_UNIT_BYTES)

    def append(self, units: bytes) -> int:
        """
        Append units with one write and return the timer offset of the first one.

        Ask :meth:`reserve` first for how many there is room.

        Raises:
            WriteFailedError: the disk refused; the log is as before.

        """
        queue = self._queue
        assert queue is not None, "reserve() has made it"
        entry = TimerUnitEntry(units, queue.next_offset)
        queue.append(entry)
        return entry.base_offset

    def unit_at(self, timer_offset: int) -> TimerUnit | None:
        """Return the unit at a timer offset, None if none stands there (any more)."""
        queue = self._queue
        if queue is None or not queue.start_offset <= timer_offset < queue.next_offset:
            return None
        file = queue.find(timer_offset)
        if file is None:
            return None
        data = file.file.read(timer_offset - file.base_offset, TIMER_UNIT_BYTES)
        return TimerUnit.decode(data)

    def units(self, timer_offset: int = 0) -> Iterator[tuple[int, TimerUnit]]:
        """
        Yield (timer offset, unit) from the file on that holds `timer_offset`.

        Raises:
            CorruptEntryError: something else stands in a file before its end.

        """
        for file in [] if self._queue is None else self._queue.files():
            if file.limit_offset <= timer_offset:
                continue
            for start, data in _pieces(file):
                for position in range(0, len(data), TIMER_UNIT_BYTES):
                    unit = TimerUnit.decode(data, position)
                    if unit is None:
                        if is_blank(data, position):
                            break
                        raise CorruptEntryError(file.path, start + position, "no timer unit")
                    yield file.base_offset + start + position, unit

    # cutting and lasting

    def truncate(self, timer_offset: int) -> None:
        """Let the log end at `timer_offset`: what stands behind is damaged or lost."""
        if self._queue is not None and timer_offset < self._queue.next_offset:
            self._queue.leave_behind(max(timer_offset, self._queue.start_offset))

    def delete_below(self, physical_offset: int) -> int:
        """
        Remove leading files whose last unit leads below; never the last. Count them.

        (``deleteExpiredFileByOffsetForTimerLog``)
        """
        queue = self._queue
        if queue is None:
            return 0
        start = queue.start_offset
        for file in queue.files()[:-1]:
            data = file.file.read(self._last_unit_position, TIMER_UNIT_BYTES)
            unit = TimerUnit.decode(data)
            if unit is None or unit.physical_offset >= physical_offset:
                break
            start = file.limit_offset
        return len(queue.retain(RetentionPolicy(), 0, start))

    @property
    def _last_unit_position(self) -> int:
        """Where the last unit of a full file stands (``getOffsetForLastUnit``)."""
        room = self.file_size_bytes - BLANK.size
        return room - room % TIMER_UNIT_BYTES - TIMER_UNIT_BYTES

    def begin_flush(self) -> FlushTask | None:
        """Return what must be synced, to be run in any thread; None if nothing must."""
        if self._queue is None or self._queue.recovery_point >= self._queue.next_offset:
            return None
        return self._queue.begin_flush()

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        if self._queue is not None:
            self._queue.end_flush(task)

    def flush(self) -> None:
        """Make all units durable; raises OSError."""
        task = self.begin_flush()
        if task is not None:
            task.run()
            self.end_flush(task)

    def close(self) -> None:
        """Let go of the files."""
        if self._queue is not None:
            self._queue.close()


def _pieces(file: TimerLogFile) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of a file up to its end, a great many units at once."""
    for start in range(0, file.end_position, _STEP_BYTES):
        yield start, file.file.read(start, min(_STEP_BYTES, file.end_position - start))
