"""
What the messages about groups of KIP-848, KIP-932 and KIP-1071 have in common.

Source: ``ConsumerGroup*.json``, ``ShareGroup*.json``, ``StreamsGroup*.json``.
"""

from __future__ import annotations

import uuid

import attrs

from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from logstore.segments.kafka.internal_topics.schema import Int8, Int16, Int32, Message


@attrs.frozen(kw_only=True)
class HeartbeatAssignment(Message):
    """What a member may read."""

    topic_partitions: tuple[TopicPartition, ...]


@attrs.frozen(kw_only=True)
class HeartbeatResponse(Message):
    """Where a member stands that is given partitions; the defaults are those of nobody."""

    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: HeartbeatAssignment | None = None


@attrs.frozen(kw_only=True)
class DescribeGroupsRequest(Message):
    """Which groups to describe."""

    FLEXIBLE_FROM = 0

    group_ids: tuple[str, ...]
    include_authorized_operations: Int8


@attrs.frozen(kw_only=True)
class DescribedPartitions(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    topic_name: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class DescribedAssignment(Message):
    """What a member has, or shall have."""

    topic_partitions: tuple[DescribedPartitions, ...]


@attrs.frozen(kw_only=True)
class DescribedGroupHead(Message):
    """What a group's description starts with; the defaults are those of one that is not there."""

    error_code: Int16 = 0
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
