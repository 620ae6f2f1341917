"""
DeleteRecords (21): versions 0-2. Moves log starts up; retention removes the files later.

* offset -1: everything below the high watermark, which is the log end of a broker on its own
* offset outside of [0, high watermark]: 1; below the log start: nothing changes, no error
* a topic that is only compacted: 44; an internal topic: 17; an unknown partition: 3
* the answer says where the log starts now
* v2: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import refusal_of
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import DeleteRecordsRequest, DeleteRecordsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_NO_WATERMARK = -1
_HIGH_WATERMARK = -1


def handle(broker: Broker, client: Client, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Move the log start of every named partition."""
    from kafka.protocol.admin.topics import DeleteRecordsResponse

    topic_class = DeleteRecordsResponse.DeleteRecordsTopicResult
    partition_class = topic_class.DeleteRecordsPartitionResult
    # Of a partition named twice the last offset is meant, and a topic is told by its partitions.
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            asked.setdefault(topic.name, {})[wanted.partition_index] = wanted.offset
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = []
    for name, offsets in asked.items():
        answers = [
            (index, *_delete(broker, client, name, index, offsets[index])) for index in offsets
        ]
        partitions = [
            partition_class(partition_index=index, low_watermark=watermark, error_code=code)
            for index, code, watermark in answers
        ]
        topics.append(topic_class(name=name, partitions=partitions))
    return DeleteRecordsResponse(version=request.API_VERSION, topics=topics)


def _delete(
    broker: Broker, client: Client, topic: str, index: int, offset: int
) -> tuple[ErrorCode, int]:
    """Return the error and the new log start."""
    partition = broker.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_WATERMARK
    if topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, _NO_WATERMARK
    if not broker.placements.leads(client.listener, partition):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, _NO_WATERMARK
    if partition.config.is_compacted and not partition.config.is_deleting:
        return ErrorCode.POLICY_VIOLATION, _NO_WATERMARK
    if offset < _HIGH_WATERMARK:
        return ErrorCode.OFFSET_OUT_OF_RANGE, _NO_WATERMARK
    try:
        return ErrorCode.NONE, partition.delete_records(offset)
    except (LogStoreError, OSError) as error:
        return refusal_of(error, f"{topic}-{index}").code, _NO_WATERMARK
