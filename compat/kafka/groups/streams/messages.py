"""
The messages of StreamsGroupHeartbeat (88) and StreamsGroupDescribe (89).

The library that has the other messages does not know these. Source: ``StreamsGroup*.json``.
"""

from __future__ import annotations

import attrs

from logstore.compat.kafka.authorized_operations import NOT_ASKED
from logstore.compat.kafka.groups.modern.messages import DescribedGroupHead, DescribeGroupsRequest
from logstore.segments.kafka.internal_topics.schema import Int8, Int16, Int32, Int64, Message
from logstore.segments.kafka.internal_topics.streams_group import (
    Endpoint,
    KeyValue,
    StreamsTopic,
    Subtopology,
    TaskIds,
)


@attrs.frozen(kw_only=True)
class Topology(Message):
    """What an application does; written to the log as it is told."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


@attrs.frozen(kw_only=True)
class TaskOffset(Message):
    """How far a task's changelogs have come."""

    subtopology_id: str
    partition: Int32
    offset: Int64


@attrs.frozen(kw_only=True)
class StreamsGroupHeartbeatRequest(Message):
    """A member joins, lives or leaves; null is what has not changed."""

    FLEXIBLE_FROM = 0

    group_id: str
    member_id: str
    member_epoch: Int32
    endpoint_information_epoch: Int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: Int8 = 0


@attrs.frozen(kw_only=True)
class ToldStatus(Message):
    """Something that members shall know about their group."""

    status_code: Int8
    status_detail: str


@attrs.frozen(kw_only=True)
class TopicPartitions(Message):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class EndpointToPartitions(Message):
    """What can be asked for at an endpoint."""

    user_endpoint: Endpoint
    active_partitions: tuple[TopicPartitions, ...]
    standby_partitions: tuple[TopicPartitions, ...]


@attrs.frozen(kw_only=True)
class StreamsGroupHeartbeatResponse(Message):
    """Where a member stands."""

    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag: Int32 = 0
    task_offset_interval_ms: Int32 = 0
    status: tuple[ToldStatus, ...] | None = ()
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = None


@attrs.frozen(kw_only=True)
class StreamsGroupDescribeRequest(DescribeGroupsRequest):
    """Which groups to describe."""


@attrs.frozen(kw_only=True)
class DescribedSubtopology(Message):
    """A subtopology, its internal topics with partition counts if they are known."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopic, ...]
    repartition_source_topics: tuple[StreamsTopic, ...]


@attrs.frozen(kw_only=True)
class DescribedTopology(Message):
    """What the application does."""

    epoch: Int32
    subtopologies: tuple[DescribedSubtopology, ...] | None


@attrs.frozen(kw_only=True)
class DescribedAssignment(Message):
    """What a member has, or shall have."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


@attrs.frozen(kw_only=True)
class DescribedMember(Message):
    """A member; the broker knows nothing of offsets of tasks, and of classic members."""

    member_id: str
    member_epoch: Int32
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: Int32
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: tuple[KeyValue, ...]
    task_offsets: tuple[TaskOffset, ...] = ()
    task_end_offsets: tuple[TaskOffset, ...] = ()
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    is_classic: Int8 = 0


@attrs.frozen(kw_only=True)
class DescribedGroup(DescribedGroupHead):
    """A group with its members."""

    topology: DescribedTopology | None = None
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: Int32 = NOT_ASKED


@attrs.frozen(kw_only=True)
class StreamsGroupDescribeResponse(Message):
    """The groups in the order of the request."""

    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]
