"""
Groups of the new consumer protocol (KIP-848): record types 3 to 8 and 16 of ``__consumer_offsets``.

Every key names the group, those of members the member too. A group's state is spread over records
that change on their own: its epoch, what its members want, what they shall have and what they have.

Source: ``ConsumerGroup*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int8, Int32, Int64, Message


@attrs.frozen(kw_only=True)
class GroupKey(Message):
    """Which group; the type in front says what of it the value tells."""

    group_id: str


@attrs.frozen(kw_only=True)
class GroupMemberKey(Message):
    """Which member of which group."""

    group_id: str
    member_id: str


@attrs.frozen(kw_only=True)
class ConsumerGroupRegularExpressionKey(Message):
    """Which pattern of topic names that a group subscribes to (type 16)."""

    group_id: str
    regular_expression: str


@attrs.frozen(kw_only=True)
class ConsumerGroupMetadataValue(Message):
    """The group's epoch, and a hash of its topics since release 4.1 (type 3)."""

    FLEXIBLE_FROM = 0

    epoch: Int32
    metadata_hash: Annotated[Int64, Held(tag=0)] = 0


@attrs.frozen(kw_only=True)
class PartitionRacks(Message):
    """On which racks a partition's replicas are."""

    partition: Int32
    racks: tuple[str, ...]


@attrs.frozen(kw_only=True)
class TopicMetadata(Message):
    """A topic that the group subscribes to."""

    topic_id: uuid.UUID
    topic_name: str
    num_partitions: Int32
    partition_metadata: tuple[PartitionRacks, ...]


@attrs.frozen(kw_only=True)
class ConsumerGroupPartitionMetadataValue(Message):
    """The topics as the assignor saw them; release 4.1 deletes these records (type 4)."""

    FLEXIBLE_FROM = 0

    topics: tuple[TopicMetadata, ...]


@attrs.frozen(kw_only=True)
class ClassicProtocol(Message):
    """An assignor that a member with the classic protocol knows."""

    name: str
    metadata: bytes


@attrs.frozen(kw_only=True)
class ClassicMemberMetadata(Message):
    """What a member still says in the classic protocol."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


@attrs.frozen(kw_only=True)
class ConsumerGroupMemberMetadataValue(Message):
    """A member and what it subscribes to (type 5)."""

    FLEXIBLE_FROM = 0

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Held(tag=0)] = (
        ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
    )


@attrs.frozen(kw_only=True)
class GroupTargetAssignmentMetadataValue(Message):
    """The epoch of the target assignment, and when it was made (types 6, 12 and 20)."""

    FLEXIBLE_FROM = 0

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Held(tag=0, is_ignorable=True)] = 0


@attrs.frozen(kw_only=True)
class TopicPartition(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class GroupTargetAssignmentMemberValue(Message):
    """What a member shall have (types 7 and 13)."""

    FLEXIBLE_FROM = 0

    topic_partitions: tuple[TopicPartition, ...]


@attrs.frozen(kw_only=True)
class EpochTopicPartitions(Message):
    """Partitions of one topic, and in which epoch the member got each of them."""

    topic_id: uuid.UUID
    partitions: tuple[Int32, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Held(tag=0)] = ()


@attrs.frozen(kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """What a member has, and what it still has to give back (type 8)."""

    FLEXIBLE_FROM = 0

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[EpochTopicPartitions, ...]
    partitions_pending_revocation: tuple[EpochTopicPartitions, ...]


@attrs.frozen(kw_only=True)
class ConsumerGroupRegularExpressionValue(Message):
    """The topics that a pattern meant in a version of the cluster's metadata (type 16)."""

    FLEXIBLE_FROM = 0

    topics: tuple[str, ...]
    version: Int64
    timestamp: Int64
