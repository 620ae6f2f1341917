"""
From a time to a queue offset: Java's ``getOffsetInQueueByTime``.

Queues carry no times: the store time of a unit's message is read from the commit log, and a
binary search needs some twenty of them. RocketMQ 5.x takes the first message at or after the time
(lower boundary) or the last one at or before it (upper boundary), in the file that holds it.
4.9.8 knows no boundaries: it picks the file by when it was last written, and in it the message
nearest to the time.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.messages.message_layout import BORN_HOST_POSITION, SYS_FLAG_POSITION
from logstore.segments.rocketmq.messages.system_flags import BORN_HOST_IPV6
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT

if TYPE_CHECKING:
    from logstore.segments.rocketmq.reading.get_message import ReadableCommitLog

__all__ = [
    "BoundaryType",
    "QueueFile",
    "TimedQueue",
    "nearest_queue_offset",
    "queue_offset_for_time",
]

_TIME = Struct(">q")
#: from the start of a message to the end of its store time, whatever its born host
_HEAD_BYTES = 76


class BoundaryType(enum.Enum):
    """Which of two messages around a time is meant (``BoundaryType``)."""

    LOWER = "lower"
    UPPER = "upper"

    @classmethod
    def named(cls, name: str | None) -> BoundaryType:
        """Return the boundary of that name in any case; whatever else is said means LOWER."""
        return cls.UPPER if name is not None and name.lower() == "upper" else cls.LOWER


class QueueFile(Protocol):
    """One file of a consume queue: the queue offsets ``[first, end)`` that stand in it."""

    @property
    def first_queue_offset(self) -> int:
        """The first unit."""
        ...

    @property
    def end_queue_offset(self) -> int:
        """Behind the last unit."""
        ...

    @property
    def modified_ms(self) -> int:
        """When it was last written."""
        ...


class TimedQueue(Protocol):
    """What a search by time needs of a consume queue."""

    @property
    def min_queue_offset(self) -> int:
        """The first queue offset whose message is still there."""
        ...

    @property
    def max_queue_offset(self) -> int:
        """The queue offset after the last message."""
        ...

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return up to `count_max` units of 20 bytes from `queue_offset` on."""
        ...

    def queue_files(self) -> Sequence[QueueFile]:
        """Return the files that hold units, oldest first."""
        ...


def queue_offset_for_time(
    queue: TimedQueue,
    commit_log: ReadableCommitLog,
    timestamp_ms: int,
    boundary: BoundaryType = BoundaryType.LOWER,
) -> int:
    """
    Return the queue offset for a time as RocketMQ 5.x does.

    LOWER: the first message stored at or after `timestamp_ms`, the queue's end if all are older.
    UPPER: the last one stored at or before it, the queue's start if all are newer. The queue's
    start, too, where a message that must be asked for its time cannot be read.
    """
    search = _Search(queue, commit_log, timestamp_ms)
    file = search.file_of(boundary)
    found = 0 if file is None else search.in_file(file, boundary)
    return min(max(found, queue.min_queue_offset), queue.max_queue_offset)


def nearest_queue_offset(
    queue: TimedQueue, commit_log: ReadableCommitLog, timestamp_ms: int
) -> int:
    """
    Return the queue offset for a time as RocketMQ 4.9.8 does.

    That is the message stored nearest to `timestamp_ms`, the older one of two as near, in the
    first file that was written to at or after `timestamp_ms`.
    """
    files = queue.queue_files()
    if not files:
        return 0
    file = next((one for one in files if one.modified_ms >= timestamp_ms), files[-1])
    search = _Search(queue, commit_log, timestamp_ms)
    low = max(file.first_queue_offset, queue.min_queue_offset)
    older, newer, is_found = search.around(low, file.end_queue_offset - 1)
    if not is_found:
        return 0
    if older is None or newer is None:
        return next((one for one in (older, newer) if one is not None), file.first_queue_offset)
    older_ms, newer_ms = search.time_at(older), search.time_at(newer)
    if older_ms < 0:  # its message is gone: Java has no time of it to compare
        return newer
    return newer if abs(timestamp_ms - older_ms) > abs(timestamp_ms - newer_ms) else older


def store_timestamp_at(commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int) -> int:
    """
    Return when the message of a queue unit was stored, -1 if it cannot be read.

    (``CommitLog.pickupStoreTimestamp``)
    """
    is_there = commit_log.min_physical_offset <= physical_offset
    end = physical_offset + size_bytes
    if not is_there or size_bytes < _HEAD_BYTES or end > commit_log.max_physical_offset:
        return -1
    head = commit_log.read(physical_offset, _HEAD_BYTES)
    if len(head) < _HEAD_BYTES:
        return -1
    has_long_host = head[SYS_FLAG_POSITION + 3] & BORN_HOST_IPV6
    (timestamp_ms,) = _TIME.unpack_from(head, BORN_HOST_POSITION + (20 if has_long_host else 8))
    return int(timestamp_ms)


class _Search:
    """A binary search over the store times of one queue's messages."""

    __slots__ = ("commit_log", "low_physical_offset", "queue", "timestamp_ms")

    def __init__(self, queue: TimedQueue, commit_log: ReadableCommitLog, timestamp_ms: int) -> None:
        self.queue = queue
        self.commit_log = commit_log
        self.timestamp_ms = timestamp_ms
        self.low_physical_offset = commit_log.min_physical_offset

    def time_at(self, queue_offset: int) -> int:
        """Return the store time of the message at `queue_offset`, -1 if it cannot be read."""
        unit = self.queue.units(queue_offset, 1)
        if not unit:
            return -1
        physical_offset, size_bytes, _ = UNIT.unpack(unit)
        return store_timestamp_at(self.commit_log, physical_offset, size_bytes)

    def file_of(self, boundary: BoundaryType) -> QueueFile | None:
        """Return the file to search, by the times of its first and last message."""
        files = self.queue.queue_files()
        if boundary is BoundaryType.LOWER:
            for file in files[:-1]:
                if self.time_at(file.end_queue_offset - 1) >= self.timestamp_ms:
                    return file
            return files[-1] if files else None
        for file in reversed(files):
            if self.time_at(file.first_queue_offset) <= self.timestamp_ms:
                return file
        return None

    def in_file(self, file: QueueFile, boundary: BoundaryType) -> int:
        """Return the queue offset that the boundary asks for, in one file."""
        is_lower = boundary is BoundaryType.LOWER
        low = max(file.first_queue_offset, self.queue.min_queue_offset)
        high = file.end_queue_offset - 1
        if self.time_at(high) < self.timestamp_ms:
            return high + 1 if is_lower else high
        if self.time_at(low) > self.timestamp_ms:
            return file.first_queue_offset if is_lower else 0
        older, newer, is_found = self.around(low, high)
        if not is_found:
            return 0
        if older == newer and older is not None:
            return self._last_equal(older, -1 if is_lower else 1, low, high)
        found = newer if is_lower else older
        return file.first_queue_offset if found is None else found

    def around(self, low: int, high: int) -> tuple[int | None, int | None, bool]:
        """
        Return the messages in ``[low, high]`` just before and just after the time.

        Both are the same where one has exactly the time. False as the third if a message that was
        asked cannot be read. Messages that are deleted count as older.
        """
        older: int | None = None
        newer: int | None = None
        while low <= high:
            middle = (low + high) // 2
            unit = self.queue.units(middle, 1)
            if not unit:
                return older, newer, False
            physical_offset, size_bytes, _ = UNIT.unpack(unit)
            if physical_offset < self.low_physical_offset:
                low, older = middle + 1, middle
                continue
            time_ms = store_timestamp_at(self.commit_log, physical_offset, size_bytes)
            if time_ms < 0:
                return older, newer, False
            if time_ms == self.timestamp_ms:
                return middle, middle, True
            if time_ms > self.timestamp_ms:
                high, newer = middle - 1, middle
            else:
                low, older = middle + 1, middle
        return older, newer, True

    def _last_equal(self, queue_offset: int, step: int, low: int, high: int) -> int:
        """Return the last message in that direction that has the same time, one after another."""
        while (
            low <= queue_offset + step <= high
            and self.time_at(queue_offset + step) == self.timestamp_ms
        ):
            queue_offset += step
        return queue_offset
