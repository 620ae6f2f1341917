"""
The messages of share groups, APIs 76, 77 and 90 to 92.

The library that has the other messages does not know these. Source: ``*ShareGroup*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.compat.kafka.authorized_operations import NOT_ASKED
from logstore.compat.kafka.groups.modern.messages import (
    DescribedAssignment,
    DescribedGroupHead,
    DescribeGroupsRequest,
    HeartbeatResponse,
)
from logstore.segments.kafka.internal_topics.schema import Held, Int16, Int32, Int64, Message


@attrs.frozen(kw_only=True)
class ShareGroupHeartbeatRequest(Message):
    """A member joins, lives or leaves; null is what has not changed."""

    VERSIONS = range(1, 2)
    FLEXIBLE_FROM = 0

    group_id: str
    member_id: str
    member_epoch: Int32
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class ShareGroupHeartbeatResponse(HeartbeatResponse):
    """Where a member stands."""

    VERSIONS = range(1, 2)


@attrs.frozen(kw_only=True)
class ShareGroupDescribeRequest(DescribeGroupsRequest):
    """Which groups to describe."""

    VERSIONS = range(1, 2)


@attrs.frozen(kw_only=True)
class DescribedMember(Message):
    """A member."""

    member_id: str
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: DescribedAssignment


@attrs.frozen(kw_only=True)
class DescribedGroup(DescribedGroupHead):
    """A group with its members."""

    assignor_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: Int32 = NOT_ASKED


@attrs.frozen(kw_only=True)
class ShareGroupDescribeResponse(Message):
    """The groups in the order of the request."""

    VERSIONS = range(1, 2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]


@attrs.frozen(kw_only=True)
class DescribeOffsetsTopic(Message):
    """Partitions of one topic."""

    topic_name: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class DescribeOffsetsGroup(Message):
    """A group, and the partitions to describe; null for all that it has a state for."""

    group_id: str
    topics: tuple[DescribeOffsetsTopic, ...] | None


@attrs.frozen(kw_only=True)
class DescribeShareGroupOffsetsRequest(Message):
    """Of which groups to tell the offsets."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    groups: tuple[DescribeOffsetsGroup, ...]


@attrs.frozen(kw_only=True)
class DescribedOffsetsPartition(Message):
    """Where a group starts in a partition."""

    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Annotated[Int64, Held(1, is_ignorable=True)] = -1
    error_code: Int16
    error_message: str | None


@attrs.frozen(kw_only=True)
class DescribedOffsetsTopic(Message):
    """Where a group starts in a topic."""

    topic_name: str
    topic_id: uuid.UUID
    partitions: tuple[DescribedOffsetsPartition, ...]


@attrs.frozen(kw_only=True)
class DescribedOffsetsGroup(Message):
    """Where a group starts."""

    group_id: str
    topics: tuple[DescribedOffsetsTopic, ...]
    error_code: Int16
    error_message: str | None


@attrs.frozen(kw_only=True)
class DescribeShareGroupOffsetsResponse(Message):
    """The groups in the order of the request."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedOffsetsGroup, ...]


@attrs.frozen(kw_only=True)
class AlterOffsetsPartition(Message):
    """A partition and its new start."""

    partition_index: Int32
    start_offset: Int64


@attrs.frozen(kw_only=True)
class AlterOffsetsTopic(Message):
    """New starts in one topic."""

    topic_name: str
    partitions: tuple[AlterOffsetsPartition, ...]


@attrs.frozen(kw_only=True)
class AlterShareGroupOffsetsRequest(Message):
    """Where a group shall start."""

    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[AlterOffsetsTopic, ...]


@attrs.frozen(kw_only=True)
class AlteredOffsetsPartition(Message):
    """How a change went."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None


@attrs.frozen(kw_only=True)
class AlteredOffsetsTopic(Message):
    """How the changes in one topic went."""

    topic_name: str
    topic_id: uuid.UUID
    partitions: tuple[AlteredOffsetsPartition, ...]


@attrs.frozen(kw_only=True)
class AlterShareGroupOffsetsResponse(Message):
    """How the changes went."""

    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    responses: tuple[AlteredOffsetsTopic, ...]


@attrs.frozen(kw_only=True)
class DeleteOffsetsTopic(Message):
    """A topic."""

    topic_name: str


@attrs.frozen(kw_only=True)
class DeleteShareGroupOffsetsRequest(Message):
    """Of which topics a group shall forget what it has read."""

    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[DeleteOffsetsTopic, ...]


@attrs.frozen(kw_only=True)
class DeletedOffsetsTopic(Message):
    """How the deletion in one topic went."""

    topic_name: str
    topic_id: uuid.UUID
    error_code: Int16
    error_message: str | None


@attrs.frozen(kw_only=True)
class DeleteShareGroupOffsetsResponse(Message):
    """How the deletions went."""

    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    responses: tuple[DeletedOffsetsTopic, ...]
