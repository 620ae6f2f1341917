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

import attrs

if TYPE_CHECKING:
    from logstore.segments.rocketmq.get_message import ReadableCommitLog

__all__ = [
    "BoundaryType",
    "QueueFile",
    "TimedQueue",
    "nearest_queue_offset",
    "queue_offset_for_time",
]

_UNIT = Struct(">qi")
_SYS_FLAG = Struct(">i")
_TIME = Struct(">q")
_SYS_FLAG_POSITION = 36
_BORN_HOST_POSITION = 48
_BORN_HOST_IS_IPV6 = 0x10
#: from the start of a message to the end of its store time, whatever its hosts
_HEAD_BYTES = 76


class BoundaryType(enum.Enum):
    """Which of two messages around a time is meant (``BoundaryType``)."""

    LOWER = "lower"
    UPPER = "upper"

    @classmethod
    def named(cls, name: str | None) -> BoundaryType:
        """Return the boundary of that name in any case; whatever else is said means LOWER."""
        return cls.UPPER if name is not None and name.lower() == "upper" else cls.LOWER


@attrs.frozen
class QueueFile:
    """One file of a consume queue: the queue offsets ``[first, end)`` that stand in it."""

    first_queue_offset: int
    end_queue_offset: int
    modified_ms: int = 0


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
    UPPER: the last one stored at or before it, the queue's start if all are newer. 0 where a
    message that must be asked for its time cannot be read.
    """
    raise NotImplementedError


def nearest_queue_offset(
    queue: TimedQueue, commit_log: ReadableCommitLog, timestamp_ms: int
) -> int:
    """
    Return the queue offset for a time as RocketMQ 4.9.8 does.

    That is the message stored nearest to `timestamp_ms`, the older one of two as near, in the
    first file that was written to at or after `timestamp_ms`.
    """
    raise NotImplementedError


def store_timestamp_at(commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int) -> int:
    """
    Return when the message of a queue unit was stored, -1 if it cannot be read.

    (``CommitLog.pickupStoreTimestamp``)
    """
    raise NotImplementedError
