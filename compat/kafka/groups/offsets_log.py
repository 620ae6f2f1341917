"""
What a group leaves on disk: the records of ``__consumer_offsets`` and the port to them.

======  ================================  ================================================
key     fields                            value
======  ================================  ================================================
0, 1    group, topic, partition           the committed offset, versions 0 to 4
2       group                             the group with its members, versions 0 to 4
3-15    KIP-848 and share groups          passed over here
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
from typing import TYPE_CHECKING, Protocol

import attrs

from logstore.compat.kafka.groups.record_fields import (
    FieldReader,
    FieldWriter,
    GroupRecordError,
    uuid_or_none,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.transactions.markers import Marker
    from logstore.segments.kafka.transaction_verification import Verification

NO_PRODUCER_ID = -1
#: One record as the log takes and gives it: key, and value or None for a tombstone.
GroupRecord = tuple[bytes, bytes | None]

_OFFSET_KEY_VERSIONS = (0, 1)
_GROUP_KEY_VERSION = 2
_VALUE_VERSION_MAX = 4
_FLEXIBLE_FROM = 4
_GROUP_VALUE_VERSION = 3
_OFFSET_VALUE_VERSION = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
_TOPIC_ID_TAG = 0


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
        Write all records to the partition of the group, or none; a returned call is a kept promise.

        Raises:
            StorageError: nothing was written.
            RejectedAppendError: the producer may not, or not in this transaction.

        """
        ...

    def append_marker(self, partition: int, marker: Marker) -> None:
        """Write the end of a transaction to a partition; raises as :meth:`append` does."""
        ...

    def partition_of(self, group_id: str) -> int:
        """Return the number of the group's partition."""
        ...

    def replay(self) -> Iterator[ReplayedRecord | TransactionEnd]:
        """Yield everything; that of one partition in the order in which it was written."""
        ...


@attrs.frozen
class OffsetCommitKey:
    """Whose offset of which partition."""

    group_id: str
    topic: str
    partition: int


@attrs.frozen
class GroupMetadataKey:
    """Which group."""

    group_id: str


@attrs.frozen
class CommittedOffset:
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
    """Return the key of a committed offset, version 1."""
    writer = FieldWriter().int16(1).string(key.group_id).string(key.topic)
    return writer.int32(key.partition).to_bytes()


def encode_group_metadata_key(key: GroupMetadataKey) -> bytes:
    """Return the key of a group, version 2."""
    return FieldWriter().int16(_GROUP_KEY_VERSION).string(key.group_id).to_bytes()


def decode_key(data: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """
    Return what a record is about, or None for the kinds that other group types write.

    Raises:
        GroupRecordError: the key cannot be read.

    """
    reader = FieldReader(data)
    version = reader.int16()
    if version in _OFFSET_KEY_VERSIONS:
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if version == _GROUP_KEY_VERSION:
        return GroupMetadataKey(reader.string())
    return None


def encode_offset_commit_value(value: CommittedOffset, version: int | None = None) -> bytes:
    """Return a committed offset in `version`, or in the version that release 4.3 would write."""
    if version is None:
        has_expiry = value.expire_timestamp_ms != -1
        version = _OFFSET_VALUE_VERSION_WITH_EXPIRY if has_expiry else _OFFSET_VALUE_VERSION
    writer = FieldWriter(is_flexible=version >= _FLEXIBLE_FROM).int16(version).int64(value.offset)
    if version >= 3:
        writer.int32(value.leader_epoch)
    writer.string(value.metadata).int64(value.commit_timestamp_ms)
    if version == 1:
        writer.int64(value.expire_timestamp_ms)
    topic_id = value.topic_id
    return writer.tagged_fields({_TOPIC_ID_TAG: topic_id.bytes} if topic_id else {}).to_bytes()


def decode_offset_commit_value(data: bytes) -> CommittedOffset:
    """
    Return a committed offset of any version.

    Raises:
        GroupRecordError: the value cannot be read, or its version is not known.

    """
    version, reader = _open_value(data)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else -1
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=uuid_or_none(reader.tagged_fields().get(_TOPIC_ID_TAG)),
    )


def encode_group_metadata_value(value: GroupMetadata, version: int = _GROUP_VALUE_VERSION) -> bytes:
    """Return a group in `version`; what a version cannot hold is left out."""
    writer = FieldWriter(is_flexible=version >= _FLEXIBLE_FROM).int16(version)
    writer.string(value.protocol_type).int32(value.generation_id)
    writer.string(value.protocol_name).string(value.leader_id)
    if version >= 2:
        writer.int64(value.state_since_ms)
    writer.count(len(value.members))
    for member in value.members:
        writer.string(member.member_id)
        if version >= 3:
            writer.string(member.group_instance_id)
        writer.string(member.client_id).string(member.client_host)
        if version >= 1:
            writer.int32(member.rebalance_timeout_ms)
        writer.int32(member.session_timeout_ms)
        writer.blob(member.subscription).blob(member.assignment).tagged_fields({})
    return writer.tagged_fields({}).to_bytes()


def decode_group_metadata_value(data: bytes) -> GroupMetadata:
    """
    Return a group of any version.

    Raises:
        GroupRecordError: the value cannot be read, or its version is not known.

    """
    version, reader = _open_value(data)
    group = GroupMetadata(
        protocol_type=reader.string(),
        generation_id=reader.int32(),
        protocol_name=reader.nullable_string(),
        leader_id=reader.nullable_string(),
        state_since_ms=reader.int64() if version >= 2 else -1,
        members=tuple(_read_member(reader, version) for _ in range(reader.count())),
    )
    reader.tagged_fields()
    return group


def _read_member(reader: FieldReader, version: int) -> MemberMetadata:
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= 3 else None
    client_id = reader.string()
    client_host = reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription = reader.blob()
    assignment = reader.blob()
    reader.tagged_fields()
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )


def _open_value(data: bytes) -> tuple[int, FieldReader]:
    version = FieldReader(data).int16()
    if not 0 <= version <= _VALUE_VERSION_MAX:
        raise GroupRecordError(f"value version {version} is not known, 0 to 4 are")
    return version, FieldReader(data, position=2, is_flexible=version >= _FLEXIBLE_FROM)
