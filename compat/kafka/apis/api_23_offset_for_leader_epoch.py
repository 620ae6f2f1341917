"""
OffsetForLeaderEpoch (23): versions 2-4. How far the log of an old leader can be trusted.

* answers the greatest epoch that is not above the asked one, and where it ended
* an epoch that is not known, or above all known ones: -1 and -1, no error
* the client's own idea of the current epoch is checked: 74 or 75; an unknown partition: 3
* v3: replica id; v4: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.leader_fencing import fencing_error

if TYPE_CHECKING:
    from kafka.protocol.consumer.offsets import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_NONE = -1


def handle(
    broker: Broker, client: Client, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look every asked epoch up."""
    from kafka.protocol.consumer.offsets import OffsetForLeaderEpochResponse

    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    return OffsetForLeaderEpochResponse(
        version=request.API_VERSION,
        topics=[
            topic_class(
                topic=topic.topic,
                partitions=[
                    topic_class.EpochEndOffset(**_answer(broker, client, topic.topic, asked))
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _answer(
    broker: Broker,
    client: Client,
    topic: str,
    asked: OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition,
) -> dict[str, int]:
    partition = broker.partition(topic, asked.partition)
    error = fencing_error(broker, client.listener, partition, asked.current_leader_epoch)
    epoch = end_offset = _NONE
    if partition is not None and error is ErrorCode.NONE:
        epoch, end_offset = partition.leader_epochs.end_offset_for(
            asked.leader_epoch, partition.end_offset
        )
    return {
        "error_code": error,
        "partition": asked.partition,
        "leader_epoch": epoch,
        "end_offset": end_offset,
    }
