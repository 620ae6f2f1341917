"""
The messages of ConsumerGroupHeartbeat (68) and ConsumerGroupDescribe (69).

The library that has the other messages does not know these. Source: ``ConsumerGroup*.json``.
"""

from __future__ import annotations

from typing import Annotated

import attrs

from logstore.compat.kafka.authorized_operations import NOT_ASKED
from logstore.compat.kafka.groups.modern.messages import (
    DescribedAssignment,
    DescribedGroupHead,
    DescribeGroupsRequest,
    HeartbeatResponse,
)
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from logstore.segments.kafka.internal_topics.schema import Held, Int8, Int32, Message


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatRequest(Message):
    """A member joins, lives or leaves; null is what has not changed."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, Held(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartition, ...] | None = None


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatResponse(HeartbeatResponse):
    """Where a member stands."""

    VERSIONS = range(2)


@attrs.frozen(kw_only=True)
class ConsumerGroupDescribeRequest(DescribeGroupsRequest):
    """Which groups to describe."""

    VERSIONS = range(2)


@attrs.frozen(kw_only=True)
class DescribedMember(Message):
    """A member; `member_type` is 0 for the classic protocol, 1 for that of KIP-848."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: Annotated[Int8, Held(1, is_ignorable=True)] = -1


@attrs.frozen(kw_only=True)
class DescribedGroup(DescribedGroupHead):
    """A group with its members."""

    assignor_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: Int32 = NOT_ASKED


@attrs.frozen(kw_only=True)
class ConsumerGroupDescribeResponse(Message):
    """The groups in the order of the request."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]
