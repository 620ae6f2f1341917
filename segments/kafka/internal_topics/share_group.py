"""
Share groups (KIP-932): record types 9 to 15 of ``__consumer_offsets``, and ``__share_group_state``.

Source: ``ShareGroup*.json``, ``ShareSnapshot*.json``, ``ShareUpdate*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from logstore.segments.kafka.internal_topics.schema import (
    Held,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
)


@attrs.frozen(kw_only=True)
class ShareGroupMemberMetadataValue(Message):
    """A member and what it subscribes to (type 10)."""

    FLEXIBLE_FROM = 0

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


@attrs.frozen(kw_only=True)
class ShareGroupMetadataValue(Message):
    """The group's epoch and a hash of its topics (type 11)."""

    FLEXIBLE_FROM = 0

    epoch: Int32
    metadata_hash: Int64


@attrs.frozen(kw_only=True)
class ShareGroupCurrentMemberAssignmentValue(Message):
    """What a member has (type 14)."""

    FLEXIBLE_FROM = 0

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartition, ...]


@attrs.frozen(kw_only=True)
class TopicPartitionsInfo(Message):
    """A topic by id and name, and some of its partitions."""

    topic_id: uuid.UUID
    topic_name: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class TopicInfo(Message):
    """A topic by id and name."""

    topic_id: uuid.UUID
    topic_name: str


@attrs.frozen(kw_only=True)
class ShareGroupStatePartitionMetadataValue(Message):
    """For which partitions the share coordinator keeps state (type 15)."""

    FLEXIBLE_FROM = 0

    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]


@attrs.frozen(kw_only=True)
class SharePartitionKey(Message):
    """A group's share of which partition (types 0 and 1 of ``__share_group_state``)."""

    group_id: str
    topic_id: uuid.UUID
    partition: Int32


@attrs.frozen(kw_only=True)
class StateBatch(Message):
    """Offsets that were delivered together, how often and with what outcome."""

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@attrs.frozen(kw_only=True)
class ShareSnapshotValue(Message):
    """All that is known of a share partition (type 0)."""

    FLEXIBLE_FROM = 0

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Held(tag=0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


@attrs.frozen(kw_only=True)
class ShareUpdateValue(Message):
    """What has changed since the snapshot (type 1)."""

    FLEXIBLE_FROM = 0

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Held(tag=0)] = -1
    state_batches: tuple[StateBatch, ...]
