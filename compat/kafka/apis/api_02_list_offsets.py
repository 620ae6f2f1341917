"""
ListOffsets (2): versions 1-11. Offsets by time, and the ends of partitions.

==  =======================================================================  =====
-1  the log end; the last stable offset for a read_committed consumer         v1
-2  the log start                                                             v1
-3  the record with the largest timestamp (KIP-734)                           v7
-4  the log start on local disk, which here is the log start (KIP-405)        v8
-5  the last offset in tiered storage: -1, there is none (KIP-1005)           v9
-6  the earliest offset that waits for its upload: -1 (KIP-1023)              v11
>0  the first record that is at least that young                              v1
==  =======================================================================  =====

* nothing found, or nothing that the consumer may read yet: offset and timestamp -1, no error
* another negative time, or one from a later version, is 35; a partition asked for twice is 42
* v2: isolation level, throttle time; v4: leader epochs, 74 or 75 if they differ
* v6: flexible; v10: a timeout for tiered storage, not needed
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.leader_fencing import fencing_error
from logstore.compat.kafka.refused_request import refusal_of
from logstore.compat.kafka.registry import register
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_LATEST, _EARLIEST, _LARGEST_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
_FIRST_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _LARGEST_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_NO_VERSION = 1 << 15
_CONSUMER = -1
_READ_COMMITTED = 1


@attrs.frozen
class _Found:
    """Where a time lies; all -1 for "nowhere"."""

    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


_NOWHERE = _Found()


def handle(broker: Broker, client: Client, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look every asked time up."""
    from kafka.protocol.consumer.offsets import ListOffsetsResponse

    del client
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    partition_class = topic_class.ListOffsetsPartitionResponse
    counts = Counter(
        (topic.name, asked.partition_index)
        for topic in request.topics
        for asked in topic.partitions
    )
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = []
    for topic in request.topics:
        answers: dict[int, dict[str, Any]] = {}
        for asked in topic.partitions:
            error, found = ErrorCode.INVALID_REQUEST, _NOWHERE
            if counts[topic.name, asked.partition_index] == 1:
                error, found = _answer(broker, request, topic.name, asked)
            answers[asked.partition_index] = {
                "error_code": error,
                "timestamp": found.timestamp_ms,
                "offset": found.offset,
                "leader_epoch": found.leader_epoch,
            }
        partitions = [
            partition_class(partition_index=index, **fields) for index, fields in answers.items()
        ]
        topics.append(topic_class(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(version=request.API_VERSION, topics=topics)


def _answer(
    broker: Broker,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition,
) -> tuple[ErrorCode, _Found]:
    timestamp_ms = asked.timestamp
    first_version = _FIRST_VERSION.get(timestamp_ms, _NO_VERSION)
    if timestamp_ms < 0 and first_version > request.API_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION, _NOWHERE
    partition = broker.partition(topic, asked.partition_index)
    error = fencing_error(partition, asked.current_leader_epoch)
    if partition is None or error is not ErrorCode.NONE:
        return error, _NOWHERE
    end_offset = partition.end_offset
    if request.replica_id == _CONSUMER and request.isolation_level == _READ_COMMITTED:
        end_offset = partition.last_stable_offset
    try:
        return ErrorCode.NONE, _find(partition, timestamp_ms, end_offset)
    except (LogStoreError, OSError) as failure:
        return refusal_of(failure, f"{topic}-{asked.partition_index}").code, _NOWHERE


def _find(partition: KafkaPartition, timestamp_ms: int, end_offset: int) -> _Found:
    """Look up in what lies below `end_offset`."""
    if timestamp_ms == _LATEST:
        return _Found(offset=end_offset, leader_epoch=partition.leader_epoch)
    if timestamp_ms in (_EARLIEST, _EARLIEST_LOCAL):
        start_offset = partition.start_offset
        epochs = partition.leader_epochs.entries
        is_known = bool(epochs) and epochs[0][1] <= start_offset
        return _Found(offset=start_offset, leader_epoch=epochs[0][0] if is_known else -1)
    if timestamp_ms in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOWHERE
    if timestamp_ms == _LARGEST_TIMESTAMP:
        found = partition.find_max_timestamp()
    else:
        found = partition.find_timestamp(timestamp_ms)
    if found is None or found.offset >= end_offset:
        return _NOWHERE
    return _Found(found.timestamp_ms, found.offset, found.leader_epoch)


register(2, "ListOffsets", (1, 11), flexible_from=6, module="consumer.offsets", handle=handle)
