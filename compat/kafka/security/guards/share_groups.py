"""Guards of share groups (KIP-932): members' heartbeats, and groups described."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.apis.api_76_share_group_heartbeat import can_be_member_id
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.messages import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from logstore.compat.kafka.security.guards.own_messages import DescribeGuard, HeartbeatGuard


def _subscribed(asked: ShareGroupHeartbeatRequest) -> tuple[str, ...]:
    if not can_be_member_id(asked.member_id):
        return ()  # the handler's to refuse
    return asked.subscribed_topic_names or ()


def _assigned(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for one in member.assignment.topic_partitions:
            yield one.topic_name


share_group_heartbeat = HeartbeatGuard(
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, _subscribed, serves_share_groups
)
share_group_describe = DescribeGuard(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    DescribedGroup,
    _assigned,
    "The group has described topic(s) that the client is not authorized to describe.",
    serves_share_groups,
)
