"""
The messages of the share coordinator, APIs 83 to 87.

The library that has the other messages does not know these. Source: ``*ShareGroupState*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int16, Int32, Int64, Message
from logstore.segments.kafka.internal_topics.share_group import StateBatch


@attrs.frozen(kw_only=True)
class StateToBegin(Message):
    """A partition, and the epoch and start of its state."""

    partition: Int32
    state_epoch: Int32
    start_offset: Int64


@attrs.frozen(kw_only=True)
class StateToRead(Message):
    """A partition, and the epoch of its leader, who asks."""

    partition: Int32
    leader_epoch: Int32


@attrs.frozen(kw_only=True)
class StateToWrite(Message):
    """A partition, the epochs that the writer knows, and what has changed."""

    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Held(1, is_ignorable=True)] = -1
    state_batches: tuple[StateBatch, ...]


@attrs.frozen(kw_only=True)
class StateToDelete(Message):
    """A partition."""

    partition: Int32


@attrs.frozen(kw_only=True)
class TopicToBegin(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[StateToBegin, ...]


@attrs.frozen(kw_only=True)
class TopicToRead(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[StateToRead, ...]


@attrs.frozen(kw_only=True)
class TopicToWrite(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[StateToWrite, ...]


@attrs.frozen(kw_only=True)
class TopicToDelete(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[StateToDelete, ...]


@attrs.frozen(kw_only=True)
class InitializeShareGroupStateRequest(Message):
    """States to begin."""

    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[TopicToBegin, ...]


@attrs.frozen(kw_only=True)
class ReadShareGroupStateRequest(Message):
    """States to read."""

    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[TopicToRead, ...]


@attrs.frozen(kw_only=True)
class WriteShareGroupStateRequest(Message):
    """States to change."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[TopicToWrite, ...]


@attrs.frozen(kw_only=True)
class DeleteShareGroupStateRequest(Message):
    """States to forget."""

    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[TopicToDelete, ...]


@attrs.frozen(kw_only=True)
class ReadShareGroupStateSummaryRequest(Message):
    """States of which the batches are not wanted."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str
    topics: tuple[TopicToRead, ...]


@attrs.frozen(kw_only=True)
class PartitionOutcome(Message):
    """How a change of one partition went."""

    partition: Int32
    error_code: Int16
    error_message: str | None


@attrs.frozen(kw_only=True)
class TopicOutcome(Message):
    """How changes in one topic went."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionOutcome, ...]


@attrs.frozen(kw_only=True)
class StateOutcomeResponse(Message):
    """How changes went: what Initialize-, Write- and DeleteShareGroupState are answered with."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    results: tuple[TopicOutcome, ...]


@attrs.frozen(kw_only=True)
class PartitionState(Message):
    """What is known of one partition."""

    partition: Int32
    error_code: Int16
    error_message: str | None = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    state_batches: tuple[StateBatch, ...] = ()


@attrs.frozen(kw_only=True)
class TopicState(Message):
    """What is known of one topic."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionState, ...]


@attrs.frozen(kw_only=True)
class ReadShareGroupStateResponse(Message):
    """What is known."""

    FLEXIBLE_FROM = 0

    results: tuple[TopicState, ...]


@attrs.frozen(kw_only=True)
class PartitionSummary(Message):
    """Where the state of one partition starts."""

    partition: Int32
    error_code: Int16
    error_message: str | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, Held(1, is_ignorable=True)] = -1


@attrs.frozen(kw_only=True)
class TopicSummary(Message):
    """Where the states of one topic start."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionSummary, ...]


@attrs.frozen(kw_only=True)
class ReadShareGroupStateSummaryResponse(Message):
    """Where states start."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    results: tuple[TopicSummary, ...]
