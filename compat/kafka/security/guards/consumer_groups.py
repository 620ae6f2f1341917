"""Guards of KIP-848 groups."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)
from logstore.compat.kafka.groups.modern.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.security.guards.own_messages import DescribeGuard, HeartbeatGuard


def _subscribed(asked: ConsumerGroupHeartbeatRequest) -> tuple[str, ...]:
    return asked.subscribed_topic_names or ()


def _assigned(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for one in assignment.topic_partitions:
                yield one.topic_name


consumer_group_heartbeat = HeartbeatGuard(
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    _subscribed,
    serves_consumer_groups,
)
consumer_group_describe = DescribeGuard(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    _assigned,
    "The group has described topic(s) that the client is not authorized to describe.",
    serves_consumer_groups,
)
