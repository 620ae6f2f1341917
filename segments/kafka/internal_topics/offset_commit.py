"""
Committed offsets: records of types 0 and 1 in ``__consumer_offsets``.

Both types have the same key; release 0.8.1 wrote type 0, every later one type 1. Broker releases
write value version 1 (with `expire_timestamp`) if the commit asked for a retention of its own, else
the newest version of their metadata: 3 up to release 4.0, 4 with the topic's id since then.

Source: ``OffsetCommitKey.json``, ``OffsetCommitValue.json``, ``LegacyOffsetCommit*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import NO_ID, Held, Int32, Int64, Message


@attrs.frozen(kw_only=True)
class LegacyOffsetCommitKey(Message):
    """Whose offset of which partition, as release 0.8.1 wrote it."""

    group: str
    topic: str
    partition: Int32


@attrs.frozen(kw_only=True)
class LegacyOffsetCommitValue(Message):
    """How far the group had come, as release 0.8.1 wrote it."""

    offset: Int64
    metadata: str
    commit_timestamp: Int64


@attrs.frozen(kw_only=True)
class OffsetCommitKey(Message):
    """Whose offset of which partition."""

    group: str
    topic: str
    partition: Int32


@attrs.frozen(kw_only=True)
class OffsetCommitValue(Message):
    """How far the group has come: `offset` is the next record that it will read."""

    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    offset: Int64
    leader_epoch: Annotated[Int32, Held(3, is_ignorable=True)] = -1
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, Held(1, 1, is_ignorable=True)] = -1
    topic_id: Annotated[uuid.UUID, Held(4, tag=0, is_ignorable=True)] = NO_ID
