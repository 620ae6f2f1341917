"""
AlterShareGroupOffsets (91): version 0. A share group starts elsewhere in partitions.

* what it has read of them before is forgotten; a group that is not there comes into being
* 68 it has members; 69 it is a group of another kind; 24 it has no name
* 35 where the cluster has no share groups; 3, for each partition, what is not there
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.exchange import TopicAltered
from logstore.compat.kafka.groups.share.messages import (
    AlteredOffsetsPartition,
    AlteredOffsetsTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_UNSUPPORTED = "The version of API is not supported."


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Move a group."""
    del client
    asked = read_request(AlterShareGroupOffsetsRequest, request)
    starts = [
        (topic.topic_name, [(one.partition_index, one.start_offset) for one in topic.partitions])
        for topic in asked.topics
    ]
    error, message, topics = ErrorCode.NONE, None, list[TopicAltered]()
    try:
        if not serves_share_groups(broker):
            raise RefusedRequestError(ErrorCode.UNSUPPORTED_VERSION, _UNSUPPORTED)
        topics = broker.groups.shares.offsets.alter(asked.group_id, starts)
    except RefusedRequestError as refused:
        error, message = refused.code, refused.message
    told: dict[str, AlteredOffsetsTopic] = {}
    for topic in map(_topic, topics):  # who asks for a topic twice is told of it once
        before = told.setdefault(topic.topic_name, attrs.evolve(topic, partitions=()))
        together = before.partitions + topic.partitions
        told[topic.topic_name] = attrs.evolve(before, partitions=together)
    response = AlterShareGroupOffsetsResponse(
        error_code=error, error_message=message, responses=tuple(told.values())
    )
    return answered(response, request)


def _topic(topic: TopicAltered) -> AlteredOffsetsTopic:
    return AlteredOffsetsTopic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            AlteredOffsetsPartition(
                partition_index=one.partition,
                error_code=one.error_code,
                error_message=one.error_message,
            )
            for one in topic.partitions
        ),
    )
