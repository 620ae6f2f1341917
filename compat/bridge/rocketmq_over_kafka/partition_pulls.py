"""What a pull from a partition gets: the rules of RocketMQ's queues, over records with holes."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from logstore.compat.bridge.memory_file import MemoryFile
from logstore.segments.rocketmq.reading.get_message import GetMessageResult, GetMessageStatus

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_reads import Chunk, PartitionReads
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

#: so many messages are looked at for those that pass a filter
_SCANNED_COUNT_MAX = 5_000


def pull(
    partition: KafkaPartition,
    reads: PartitionReads,
    queue_offset: int,
    count_max: int,
    size_bytes_max: int,
    message_filter: MessageFilter | None,
) -> GetMessageResult:
    """Return the messages from `queue_offset` on that pass the filter, or why there are none."""
    low, high = partition.start_offset, partition.last_stable_offset
    status, begin = GetMessageStatus.NO_MATCHED_MESSAGE, queue_offset
    if high == 0:
        status, begin = GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    elif queue_offset < low:
        status, begin = GetMessageStatus.OFFSET_TOO_SMALL, low
    elif queue_offset == high:
        status = GetMessageStatus.OFFSET_OVERFLOW_ONE
    elif queue_offset > high:
        status, begin = GetMessageStatus.OFFSET_OVERFLOW_BADLY, high
    result = GetMessageResult(status, begin, low, high)
    if status is GetMessageStatus.NO_MATCHED_MESSAGE:
        _scan(partition, reads, result, count_max, size_bytes_max, message_filter)
    return result


def _scan(
    partition: KafkaPartition,
    reads: PartitionReads,
    result: GetMessageResult,
    count_max: int,
    size_bytes_max: int,
    message_filter: MessageFilter | None,
) -> None:
    pieces: list[bytes] = []
    size_bytes = count = 0
    offset, high = result.next_begin_offset, result.max_queue_offset
    last_offset = min(high, offset + _SCANNED_COUNT_MAX)
    is_full = False
    while offset < last_offset and not is_full:
        chunk = reads.chunk(partition, offset)
        start, end = chunk.index_of(offset), chunk.index_of(high)
        left = count_max - count, size_bytes_max - size_bytes
        if message_filter is None:
            stop = _fitting(chunk, start, end, left, is_first=not count)
            found, matched = (
                [chunk.data[chunk.start_of(start) : chunk.start_of(stop)]],
                stop - start,
            )
        else:
            stop, found = _matching(chunk, start, end, left, message_filter, is_first=not count)
            matched = len(found)
            result.filtered_count += stop - start - matched
        count += matched
        pieces += found
        size_bytes += sum(map(len, found))
        is_full = stop < end
        offset = min(chunk.offsets[stop] if is_full else chunk.next_offset, high)
        result.next_begin_offset = offset
    if count:
        result.status = GetMessageStatus.FOUND
        result.runs = [(MemoryFile(b"".join(pieces)), 0, size_bytes)]
        result.count, result.size_bytes = count, size_bytes


def _fitting(chunk: Chunk, start: int, end: int, left: tuple[int, int], *, is_first: bool) -> int:
    """Return behind which message a pull without a filter is full: so many, so many bytes."""
    count, size_bytes = left
    stop = bisect_right(chunk.ends, chunk.start_of(start) + size_bytes, start, end)
    stop = min(stop, start + count)
    return min(start + 1, end) if is_first and stop <= start else max(stop, start)


def _matching(
    chunk: Chunk,
    start: int,
    end: int,
    left: tuple[int, int],
    message_filter: MessageFilter,
    *,
    is_first: bool,
) -> tuple[int, list[bytes]]:
    """Return behind which message a pull is full, and those before that match."""
    found: list[bytes] = []
    count, size_bytes = left
    for index in range(start, end):
        if not is_first and (count <= 0 or chunk.ends[index] - chunk.start_of(index) > size_bytes):
            return index, found
        data = chunk.message(index)
        if _passes(message_filter, data, chunk.tags_codes[index]):
            found.append(data)
            count -= 1
            size_bytes -= len(data)
            is_first = False
    return end, found


def _passes(message_filter: MessageFilter, data: bytes, tags_code: int) -> bool:
    if not message_filter.matches_unit(tags_code, None):
        return False
    return not message_filter.reads_messages or message_filter.matches_message(data)
