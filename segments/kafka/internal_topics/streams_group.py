"""
Groups of Kafka Streams applications (KIP-1071): record types 17 to 23 of ``__consumer_offsets``.

Source: ``StreamsGroup*.json``.
"""

from __future__ import annotations

from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import (
    Held,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    UInt16,
)


@attrs.frozen(kw_only=True)
class KeyValue(Message):
    """A named text: a tag of a client, or a setting."""

    key: str
    value: str


@attrs.frozen(kw_only=True)
class StreamsGroupMetadataValue(Message):
    """The group's epoch, and with which topology and settings it was last assigned (type 17)."""

    FLEXIBLE_FROM = 0

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, Held(tag=0)] = -1
    last_assignment_configs: Annotated[tuple[KeyValue, ...] | None, Held(tag=1)] = ()


@attrs.frozen(kw_only=True)
class Endpoint(Message):
    """Where a member answers interactive queries."""

    host: str
    port: UInt16


@attrs.frozen(kw_only=True)
class StreamsGroupMemberMetadataValue(Message):
    """A member (type 19)."""

    FLEXIBLE_FROM = 0

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: str
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...]


@attrs.frozen(kw_only=True)
class TaskIds(Message):
    """Tasks of one subtopology."""

    subtopology_id: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class StreamsGroupTargetAssignmentMemberValue(Message):
    """What a member shall have (type 21)."""

    FLEXIBLE_FROM = 0

    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


@attrs.frozen(kw_only=True)
class EpochTaskIds(Message):
    """Tasks of one subtopology, and in which epoch the member got each of them."""

    subtopology_id: str
    partitions: tuple[Int32, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Held(tag=0)] = ()


@attrs.frozen(kw_only=True)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    """What a member has, and what it still has to give back (type 22)."""

    FLEXIBLE_FROM = 0

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: tuple[EpochTaskIds, ...]
    standby_tasks: tuple[EpochTaskIds, ...]
    warmup_tasks: tuple[EpochTaskIds, ...]
    active_tasks_pending_revocation: tuple[EpochTaskIds, ...]
    standby_tasks_pending_revocation: tuple[EpochTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[EpochTaskIds, ...]


@attrs.frozen(kw_only=True)
class StreamsTopic(Message):
    """A topic between the steps of an application."""

    name: str
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


@attrs.frozen(kw_only=True)
class CopartitionGroup(Message):
    """Topics with the same number of partitions, by their index in the subtopology."""

    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


@attrs.frozen(kw_only=True)
class Subtopology(Message):
    """One connected part of an application."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[StreamsTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@attrs.frozen(kw_only=True)
class StreamsGroupTopologyValue(Message):
    """What the application does with which topics (type 23)."""

    FLEXIBLE_FROM = 0

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]
