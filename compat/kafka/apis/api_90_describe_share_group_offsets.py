"""
DescribeShareGroupOffsets (90): versions 0-1. Where share groups start in partitions.

* topics null: all partitions that the group has a state for
* neither the group nor the topic need be there: the start is -1
* 35, for each group, where the cluster has no share groups
* v1: the lag: what is behind the start and not done yet; -1 while nobody has read
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.exchange import TopicStarts
from logstore.compat.kafka.groups.share.messages import (
    DescribedOffsetsGroup,
    DescribedOffsetsPartition,
    DescribedOffsetsTopic,
    DescribeOffsetsGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return where groups start."""
    del client
    asked = read_request(DescribeShareGroupOffsetsRequest, request)
    groups = tuple(_group(broker, wanted) for wanted in asked.groups)
    return answered(DescribeShareGroupOffsetsResponse(groups=groups), request)


def _group(broker: Broker, wanted: DescribeOffsetsGroup) -> DescribedOffsetsGroup:
    error, message, topics = ErrorCode.NONE, None, list[TopicStarts]()
    names = wanted.topics
    if not serves_share_groups(broker):
        error = ErrorCode.UNSUPPORTED_VERSION
    else:
        partitions = None if names is None else [(one.topic_name, one.partitions) for one in names]
        try:
            topics = broker.groups.shares.offsets.describe(wanted.group_id, partitions)
        except RefusedRequestError as refused:
            error, message = refused.code, refused.message
    return DescribedOffsetsGroup(
        group_id=wanted.group_id,
        topics=tuple(_topic(one) for one in topics),
        error_code=error,
        error_message=message,
    )


def _topic(topic: TopicStarts) -> DescribedOffsetsTopic:
    return DescribedOffsetsTopic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            DescribedOffsetsPartition(
                partition_index=one.partition,
                start_offset=one.start_offset,
                leader_epoch=one.leader_epoch,
                lag=one.lag,
                error_code=one.error_code,
                error_message=one.error_message,
            )
            for one in topic.partitions
        ),
    )
