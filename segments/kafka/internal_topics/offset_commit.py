"""
Committed offsets: records of types 0 and 1 in ``__consumer_offsets``.

Both types have the same key; release 0.8.1 wrote type 0, every later one type 1. Broker releases
write value version 1 (with `expire_timestamp`) if the commit asked for a retention of its own, else
the newest version of their metadata: 3 up to release 4.0, 4 with the topic's id since then.

Source: ``OffsetCommitKey.json``, ``OffsetCommitValue.json``, ``LegacyOffsetCommit*.json``.
"""

from __future__ import annotations

import struct
import uuid
from functools import lru_cache
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.codec import encode_versioned
from logstore.segments.kafka.internal_topics.schema import NO_ID, Held, Int32, Int64, Message

KEY_TYPE = 1
VALUE_VERSION = 4
_PARTITION = struct.Struct(">i")
encode_partition = _PARTITION.pack
_VALUE_START = struct.Struct(">hqi")
encode_value_start = _VALUE_START.pack
_TIMESTAMP = struct.Struct(">q")
_TOPIC_ID_TAG = b"\x01\x00\x10"
_EMPTY_TEXT = b"\x01"
#: whose length, and one, is a varint of one byte
_SHORT_TEXT_BYTES_MAX = 126


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


def encode_key(group: str, topic: str, partition: int) -> bytes:
    """
    Return the key of type 1; a group commits to many partitions of a topic, again and again.

    Raises as :func:`~logstore.segments.kafka.internal_topics.codec.encode_versioned`.
    """
    return encode_key_start(group, topic) + encode_partition(partition)


@lru_cache(maxsize=1024)
def encode_key_start(group: str, topic: str) -> bytes:
    """Return what the keys of a group and a topic begin with; the partition follows."""
    key = encode_versioned(OffsetCommitKey(group=group, topic=topic, partition=0), KEY_TYPE)
    return key[: -_PARTITION.size]


def encode_value(
    offset: int, leader_epoch: int, metadata: str, commit_timestamp: int, topic_id: uuid.UUID
) -> bytes:
    """
    Return the value in version 4, which most are written in.

    Raises as :func:`~logstore.segments.kafka.internal_topics.codec.encode_versioned`.
    """
    if not metadata:
        return encode_value_start(VALUE_VERSION, offset, leader_epoch) + encode_plain_end(
            commit_timestamp, topic_id
        )
    text = metadata.encode(errors="surrogateescape")
    if len(text) > _SHORT_TEXT_BYTES_MAX:
        value = OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata,
            commit_timestamp=commit_timestamp,
            topic_id=topic_id,
        )
        return encode_versioned(value, VALUE_VERSION)
    return b"".join(
        (
            encode_value_start(VALUE_VERSION, offset, leader_epoch),
            (len(text) + 1).to_bytes(1, "big"),
            text,
            _encode_end(commit_timestamp, topic_id),
        )
    )


def encode_plain_end(commit_timestamp: int, topic_id: uuid.UUID | None) -> bytes:
    """
    Return what ends a value of version 4 without a text, the same for a commit's whole topic.

    Version, offset and leader epoch come before it: `encode_value_start`.
    """
    return _EMPTY_TEXT + _encode_end(commit_timestamp, topic_id)


def _encode_end(commit_timestamp: int, topic_id: uuid.UUID | None) -> bytes:
    tags = b"\x00" if topic_id is None or topic_id == NO_ID else _TOPIC_ID_TAG + topic_id.bytes
    return _TIMESTAMP.pack(commit_timestamp) + tags
