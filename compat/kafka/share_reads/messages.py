"""
The messages of ShareFetch (78) and ShareAcknowledge (79).

The library that has the other messages does not know these. Answers to ShareFetch are written by
:mod:`~logstore.compat.kafka.share_reads.fetch_reply`, which leaves records in their files; the
class here is for whoever reads them. Source: ``ShareFetch*.json``, ``ShareAcknowledge*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import (
    Held,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
)

_VERSIONS = range(1, 3)


@attrs.frozen(kw_only=True)
class AcknowledgedBatch(Message):
    """What is said of a run of offsets: of all the same, or of each something."""

    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...]


@attrs.frozen(kw_only=True)
class SharedPartition(Message):
    """A partition that is read, and what is said of records of it."""

    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgedBatch, ...] = ()


@attrs.frozen(kw_only=True)
class SharedTopic(Message):
    """A topic that is read."""

    topic_id: uuid.UUID
    partitions: tuple[SharedPartition, ...]


@attrs.frozen(kw_only=True)
class ForgottenTopic(Message):
    """Partitions that a session lets go of."""

    topic_id: uuid.UUID
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class ShareFetchRequest(Message):
    """A member wants records, and says what became of others."""

    VERSIONS = _VERSIONS
    FLEXIBLE_FROM = 0

    group_id: str | None
    member_id: str | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Annotated[Int8, Held(2, is_ignorable=True)] = 0
    is_renew_ack: Annotated[Int8, Held(2)] = 0
    topics: tuple[SharedTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()


@attrs.frozen(kw_only=True)
class Leader(Message):
    """Who leads a partition now."""

    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@attrs.frozen(kw_only=True)
class NodeEndpoint(Message):
    """Where a leader is."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@attrs.frozen(kw_only=True)
class AcquiredRange(Message):
    """Offsets that the member has now."""

    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


@attrs.frozen(kw_only=True)
class FetchedSharePartition(Message):
    """What a partition gave."""

    partition_index: Int32
    error_code: Int16 = 0
    error_message: str | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: str | None = None
    current_leader: Leader = Leader()
    records: bytes
    acquired_records: tuple[AcquiredRange, ...] = ()


@attrs.frozen(kw_only=True)
class FetchedShareTopic(Message):
    """What a topic gave."""

    topic_id: uuid.UUID
    partitions: tuple[FetchedSharePartition, ...]


@attrs.frozen(kw_only=True)
class ShareFetchResponse(Message):
    """Records, and what came of acknowledgements."""

    VERSIONS = _VERSIONS
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: tuple[FetchedShareTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@attrs.frozen(kw_only=True)
class ShareAcknowledgeRequest(Message):
    """A member says what became of records."""

    VERSIONS = _VERSIONS
    FLEXIBLE_FROM = 0

    group_id: str | None
    member_id: str | None
    share_session_epoch: Int32
    is_renew_ack: Annotated[Int8, Held(2)] = 0
    topics: tuple[SharedTopic, ...]


@attrs.frozen(kw_only=True)
class AcknowledgedSharePartition(Message):
    """What came of the acknowledgements of a partition."""

    partition_index: Int32
    error_code: Int16 = 0
    error_message: str | None = None
    current_leader: Leader = Leader()


@attrs.frozen(kw_only=True)
class AcknowledgedShareTopic(Message):
    """What came of the acknowledgements of a topic."""

    topic_id: uuid.UUID
    partitions: tuple[AcknowledgedSharePartition, ...]


@attrs.frozen(kw_only=True)
class ShareAcknowledgeResponse(Message):
    """What came of acknowledgements."""

    VERSIONS = _VERSIONS
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, Held(2, is_ignorable=True)] = 0
    responses: tuple[AcknowledgedShareTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
