"""
What a group leaves on disk: the records of ``__consumer_offsets`` and the port to them.

======  ================================  ================================================
key     fields                            value
======  ================================  ================================================
0, 1    group, topic, partition           the committed offset, versions 0 to 4
2       group                             the group with its members, versions 0 to 4
3-8,16  KIP-848 groups                    see :mod:`~logstore.compat.kafka.groups.consumer`
10-15   share groups                      see :mod:`~logstore.compat.kafka.groups.share`
17-23   streams groups                    see :mod:`~logstore.compat.kafka.groups.streams`
======  ================================  ================================================

Keys and values start with their version (int16); a missing value is a tombstone. Values of
version 4 are flexible. Written are, byte for byte as release 4.3 does it: group values in version
3, offsets in version 4 with the topic's id as tagged field 0, or in version 1 if the commit asked
for a retention time of its own (only that version can hold it).

Source: ``GroupCoordinatorRecordHelpers`` and ``Offset/GroupMetadata...{Key,Value}.json``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import attrs

from logstore.errors import StorageError
from logstore.segments.kafka.internal_topics import group_metadata, offset_commit
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
    decode_versioned,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.schema import NO_ID, MessageT
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.compat.kafka.transactions.markers import Marker
    from logstore.segments.kafka.transaction_verification import Verification

NO_PRODUCER_ID = -1
#: One record as the log takes and gives it: key, and value or None for a tombstone.
GroupRecord = tuple[bytes, bytes | None]

_OFFSET_KEY_TYPES = (0, 1)
_GROUP_KEY_TYPE = 2
_CONSUMER_GROUP_KEY_TYPES = frozenset({3, 4, 5, 6, 7, 8, 16})
_SHARE_GROUP_KEY_TYPES = frozenset(range(10, 16))
_STREAMS_GROUP_KEY_TYPES = frozenset({17, 19, 20, 21, 22, 23})
#: keys have one version; the number in front of one is its type
_KEY_VERSION = 0
_TYPE_BYTES = 2
_GROUP_VALUE_VERSION = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY = 1


class GroupRecordError(StorageError):
    """A key or value of ``__consumer_offsets`` cannot be read; the message says why."""


@attrs.frozen
class TransactionalProducer:
    """Who writes in a transaction; `guard` where the log asks whether the coordinator knows it."""

    producer_id: int
    epoch: int
    guard: Verification | None = None


@attrs.frozen
class ReplayedRecord:
    """A record as it stands in `partition`; `producer_id` is -1 outside transactions."""

    key: bytes
    value: bytes | None
    partition: int = 0
    producer_id: int = NO_PRODUCER_ID


@attrs.frozen
class TransactionEnd:
    """The marker after which a producer's records in `partition` count, or never will."""

    partition: int
    producer_id: int
    is_commit: bool
    timestamp_ms: int = NO_TIMESTAMP


class OffsetsLog(Protocol):
    """
    Where the coordinator keeps what must survive: ``__consumer_offsets``, or something like it.

    Transactions end partition by partition, so a group's partition is told from the others.
    """

    def append(
        self,
        group_id: str,
        records: list[GroupRecord],
        producer: TransactionalProducer | None = None,
    ) -> None:
        """
        Write all records to the partition of the group, or none; :meth:`flush` comes next.

        Raises:
            StorageError: nothing was written.
            RejectedAppendError: the producer may not, or not in this transaction.

        """
        ...

    def flush(self) -> None:
        """
        Keep the promise of what was appended, as far as it is to be on disk before an answer.

        Raises:
            StorageError: it is in the log, and a loss of power may take it.

        """
        ...

    def append_marker(self, partition: int, marker: Marker) -> None:
        """Write and flush the end of a transaction; raises as :meth:`append` and `flush` do."""
        ...

    def partition_of(self, group_id: str) -> int:
        """Return the number of the group's partition."""
        ...

    def replay(self) -> Iterator[ReplayedRecord | TransactionEnd]:
        """Yield everything; that of one partition in the order in which it was written."""
        ...


class OffsetCommitKey(NamedTuple):
    """Whose offset of which partition."""

    group_id: str
    topic: str
    partition: int


@attrs.frozen
class GroupMetadataKey:
    """Which group."""

    group_id: str


class CommittedOffset(NamedTuple):
    """How far a group has come in one partition: `offset` is the next record that it will read."""

    offset: int
    commit_timestamp_ms: int
    leader_epoch: int = -1
    metadata: str = ""
    #: when it expires, if the commit said so; else -1, and the broker's retention counts
    expire_timestamp_ms: int = -1
    topic_id: uuid.UUID | None = None


@attrs.frozen
class MemberMetadata:
    """A member as it is kept: `subscription` is what it sent for the chosen protocol."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes
    #: -1 in version 0, which did not know it
    rebalance_timeout_ms: int = -1
    group_instance_id: str | None = None


@attrs.frozen
class GroupMetadata:
    """A group as it is kept: a generation and its members, none if the group is empty."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None = None
    leader_id: str | None = None
    #: when the group came into its state; -1 in versions 0 and 1
    state_since_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


def encode_offset_commit_key(key: OffsetCommitKey) -> bytes:
    """Return the key of a committed offset, type 1."""
    return offset_commit.encode_key(key.group_id, key.topic, key.partition)


def encode_group_metadata_key(key: GroupMetadataKey) -> bytes:
    """Return the key of a group, type 2."""
    return encode_versioned(group_metadata.GroupMetadataKey(group=key.group_id), _GROUP_KEY_TYPE)


def decode_key(data: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """
    Return what a record is about, or None for the kinds that other group types write.

    Raises:
        GroupRecordError: the key cannot be read.

    """
    try:
        record_type = decode_version(data)
        if record_type in _OFFSET_KEY_TYPES:
            key = decode_message(offset_commit.OffsetCommitKey, data, _KEY_VERSION, _TYPE_BYTES)
            _check_text(key.group, key.topic)
            return OffsetCommitKey(key.group, key.topic, key.partition)
        if record_type == _GROUP_KEY_TYPE:
            found = decode_message(group_metadata.GroupMetadataKey, data, _KEY_VERSION, _TYPE_BYTES)
            _check_text(found.group)
            return GroupMetadataKey(found.group)
    except MessageError as error:
        raise GroupRecordError(str(error)) from error
    return None


def is_of_consumer_group(key: bytes) -> bool:
    """Tell whether a record is about a group of KIP-848."""
    return int.from_bytes(key[:_TYPE_BYTES], "big") in _CONSUMER_GROUP_KEY_TYPES


def is_of_share_group(key: bytes) -> bool:
    """Tell whether a record is about a group of KIP-932."""
    return int.from_bytes(key[:_TYPE_BYTES], "big") in _SHARE_GROUP_KEY_TYPES


def is_of_streams_group(key: bytes) -> bool:
    """Tell whether a record is about a group of KIP-1071."""
    return int.from_bytes(key[:_TYPE_BYTES], "big") in _STREAMS_GROUP_KEY_TYPES


def encode_offset_commit_value(value: CommittedOffset, version: int | None = None) -> bytes:
    """Return a committed offset in `version`, or in the version that release 4.3 would write."""
    topic_id = value.topic_id or NO_ID
    if version is None and value.expire_timestamp_ms == -1:
        return offset_commit.encode_value(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp_ms,
            topic_id,
        )
    message = offset_commit.OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp_ms,
        expire_timestamp=value.expire_timestamp_ms,
        topic_id=topic_id,
    )
    return encode_versioned(
        message, _OFFSET_VALUE_VERSION_WITH_EXPIRY if version is None else version
    )


def decode_offset_commit_value(data: bytes) -> CommittedOffset:
    """
    Return a committed offset of any version.

    Raises:
        GroupRecordError: the value cannot be read, or its version is not known.

    """
    value = _decoded(offset_commit.OffsetCommitValue, data)
    _check_text(value.metadata)
    return CommittedOffset(
        offset=value.offset,
        commit_timestamp_ms=value.commit_timestamp,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=None if value.topic_id == NO_ID else value.topic_id,
    )


def encode_group_metadata_value(value: GroupMetadata, version: int = _GROUP_VALUE_VERSION) -> bytes:
    """Return a group in `version`; what a version cannot hold is left out."""
    message = group_metadata.GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation=value.generation_id,
        protocol=value.protocol_name,
        leader=value.leader_id,
        current_state_timestamp=value.state_since_ms,
        members=tuple(
            group_metadata.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ),
    )
    return encode_versioned(message, version)


def decode_group_metadata_value(data: bytes) -> GroupMetadata:
    """
    Return a group of any version.

    Raises:
        GroupRecordError: the value cannot be read, or its version is not known.

    """
    value = _decoded(group_metadata.GroupMetadataValue, data)
    _check_text(value.protocol_type, value.protocol, value.leader)
    return GroupMetadata(
        protocol_type=value.protocol_type,
        generation_id=value.generation,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_since_ms=value.current_state_timestamp,
        members=tuple(_restored(member) for member in value.members),
    )


def _restored(member: group_metadata.MemberMetadata) -> MemberMetadata:
    _check_text(member.member_id, member.group_instance_id, member.client_id, member.client_host)
    return MemberMetadata(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        subscription=member.subscription,
        assignment=member.assignment,
        rebalance_timeout_ms=member.rebalance_timeout,
        group_instance_id=member.group_instance_id,
    )


def _decoded(kind: type[MessageT], data: bytes) -> MessageT:
    try:
        return decode_versioned(kind, data)[1]
    except MessageError as error:
        raise GroupRecordError(str(error)) from error


def _check_text(*texts: str | None) -> None:
    """Refuse what tools may print but a broker cannot say again: text that is no UTF-8."""
    for text in texts:
        try:
            (text or "").encode()
        except UnicodeEncodeError as error:
            raise GroupRecordError(f"{text!r} is no UTF-8") from error
