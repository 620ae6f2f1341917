"""
OffsetDelete (47): version 0.

* forgets committed offsets; partitions without one are fine
* partitions that do not exist 3, topics that a member is subscribed to 86, each for itself
* unknown group 69; a group with members whose subscriptions the broker cannot read 68
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.offset_answers import OffsetAnswers

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import OffsetDeleteRequest, OffsetDeleteResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Forget the offsets of all partitions that exist."""
    from kafka.protocol.consumer.group import OffsetDeleteResponse

    answers: OffsetAnswers[str] = OffsetAnswers()
    known: list[tuple[str, int]] = []
    for topic in request.topics:
        there = broker.topics.get(topic.name)
        indexes = [partition.partition_index for partition in topic.partitions]
        if there is None:
            answers.refuse(topic.name, indexes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            passed = answers.sift(topic.name, indexes, there.partitions)
            known += [(topic.name, index) for index in passed]
    error, codes = broker.groups.delete_offsets(request.group_id, known)
    if error is not ErrorCode.NONE:
        return OffsetDeleteResponse(version=request.API_VERSION, error_code=error, topics=[])
    topic_class = OffsetDeleteResponse.OffsetDeleteResponseTopic
    partition_class = topic_class.OffsetDeleteResponsePartition
    return OffsetDeleteResponse(
        version=request.API_VERSION,
        error_code=error,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    partition_class(partition_index=index, error_code=code) for index, code in told
                ],
            )
            for name, told in answers.told(codes)
        ],
    )
