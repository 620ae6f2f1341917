"""
Reading messages of one queue: Java's ``DefaultMessageStore.getMessage``.

A pull names a queue offset and gets the messages from there on that pass a filter, as runs of
bytes in commit log files: neighbours there become one run, so that 32 messages that were sent in
a row are one send. Nothing is decoded; a queue unit says where a message stands and how long it
is. How much one pull gets depends on whether the messages are likely to be in memory, that is
near the end of the commit log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.reading.get_message_limits import GetMessageLimits
from logstore.segments.rocketmq.reading.get_message_result import (
    GetMessageResult,
    GetMessageStatus,
)
from logstore.segments.rocketmq.reading.unit_scan import UnitScan

if TYPE_CHECKING:
    from logstore.segment import Extent
    from logstore.segments.rocketmq.reading.message_filter import ExtUnit, MessageFilter

__all__ = [
    "MAX_PULL_BYTES",
    "GetMessageLimits",
    "GetMessageResult",
    "GetMessageStatus",
    "ReadableCommitLog",
    "ReadableQueue",
    "ReadableUnits",
    "get_message",
]

#: no pull gets more bytes (``MAX_PULL_MSG_SIZE``)
MAX_PULL_BYTES = 128 * 1024 * 1024


class ReadableUnits(Protocol):
    """What reading needs of a consume queue of any kind."""

    @property
    def unit_size_bytes(self) -> int:
        """20, or 46 for a batch consume queue."""
        ...

    @property
    def min_queue_offset(self) -> int:
        """The first queue offset whose message is still there."""
        ...

    @property
    def max_queue_offset(self) -> int:
        """The queue offset after the last message."""
        ...

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return up to `count_max` whole units; the first one holds `queue_offset`."""
        ...


class ReadableQueue(ReadableUnits, Protocol):
    """What reading needs of a consume queue of 20-byte units."""

    def roll_next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the file after the one with `queue_offset`."""
        ...

    def ext_unit(self, address: int) -> ExtUnit | None:
        """Return what the consume queue extension says at `address` (a tags code), or None."""
        ...


class ReadableBatches(ReadableUnits, Protocol):
    """What reading needs of a batch consume queue."""

    def units_to_file_end(self, queue_offset: int) -> int:
        """Return how many units there are from that queue offset to the end of its file."""
        ...


class ReadableCommitLog(Protocol):
    """What reading needs of a commit log."""

    @property
    def file_size_bytes(self) -> int:
        """Length of each file."""
        ...

    @property
    def min_physical_offset(self) -> int:
        """Where the oldest file starts."""
        ...

    @property
    def max_physical_offset(self) -> int:
        """Where the next message will stand."""
        ...

    def extent(self, physical_offset: int, size_bytes: int) -> Extent:
        """Return a run of bytes that lies in one file."""
        ...

    def read(self, physical_offset: int, size_bytes: int) -> bytes:
        """Return bytes of one file."""
        ...


def get_message(
    queue: ReadableUnits | None,
    commit_log: ReadableCommitLog,
    queue_offset: int,
    count_max: int,
    size_bytes_max: int = MAX_PULL_BYTES,
    message_filter: MessageFilter | None = None,
    limits: GetMessageLimits | None = None,
) -> GetMessageResult:
    """
    Return what a pull from `queue_offset` of the queue gets.

    Args:
        queue: the consume queue, None where there is none of that topic and id.
        commit_log: where the messages stand.
        queue_offset: the first one wanted.
        count_max: get so many messages at most, and one at least if one matches.
        size_bytes_max: get so many bytes at most (100 are always granted), but one message.
        message_filter: what must match; None takes all.
        limits: of the store.

    """
    limits = limits or _DEFAULT_LIMITS
    if queue is None:
        begin = 0 if limits.corrects_queue_offset else queue_offset
        return GetMessageResult(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, begin, 0, 0)
    low, high = queue.min_queue_offset, queue.max_queue_offset
    status, begin = GetMessageStatus.NO_MATCHED_MESSAGE, queue_offset
    if high == 0:
        status, begin = GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    elif queue_offset < low:
        status, begin = GetMessageStatus.OFFSET_TOO_SMALL, low
    elif queue_offset == high:
        status = GetMessageStatus.OFFSET_OVERFLOW_ONE
    elif queue_offset > high:
        status, begin = GetMessageStatus.OFFSET_OVERFLOW_BADLY, high
    if status is not GetMessageStatus.NO_MATCHED_MESSAGE:
        begin = begin if limits.corrects_queue_offset else queue_offset
        return GetMessageResult(status, begin, low, high)
    size_max = min(max(size_bytes_max, 100), MAX_PULL_BYTES)
    scan = UnitScan(commit_log, message_filter, limits, count_max, size_max)
    result = GetMessageResult(status, begin, low, high)
    for _ in range(limits.files_max):
        if result.size_bytes or result.next_begin_offset >= high:
            break
        scan.one_file(queue, result, queue_offset)
    result.physical_offset_lag = scan.end - scan.last_physical_offset
    result.suggests_slave = result.physical_offset_lag > limits.in_memory_bytes
    return result


_DEFAULT_LIMITS = GetMessageLimits()
