"""What a pull from a partition gets: the rules of RocketMQ's queues, over records with holes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.memory_file import MemoryFile
from logstore.segments.rocketmq.reading.get_message import GetMessageResult, GetMessageStatus

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_reads import PartitionReads
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
    size_bytes = 0
    offset, high = result.next_begin_offset, result.max_queue_offset
    last_offset = min(high, offset + _SCANNED_COUNT_MAX)
    is_full = False
    while offset < last_offset and not is_full:
        chunk = reads.chunk(partition, offset)
        offset = min(chunk.next_offset, high)
        start = chunk.index_of(result.next_begin_offset)
        for at, (data, tags_code) in zip(
            chunk.offsets[start:], chunk.messages[start:], strict=True
        ):
            is_full = bool(pieces) and (
                len(pieces) >= count_max or size_bytes + len(data) > size_bytes_max
            )
            if is_full or at >= high:
                offset = min(at, high)
                break
            if _passes(message_filter, data, tags_code):
                pieces.append(data)
                size_bytes += len(data)
            else:
                result.filtered_count += 1
        result.next_begin_offset = offset
    if pieces:
        joined = b"".join(pieces)
        result.status = GetMessageStatus.FOUND
        result.runs = [(MemoryFile(joined), 0, size_bytes)]
        result.count, result.size_bytes = len(pieces), size_bytes


def _passes(message_filter: MessageFilter | None, data: bytes, tags_code: int) -> bool:
    if message_filter is None:
        return True
    if not message_filter.matches_unit(tags_code, None):
        return False
    return not message_filter.reads_messages or message_filter.matches_message(data)
