"""
Which type of record holds what: the key's first number chooses key and value class.

Source: ``CoordinatorRecordType`` of each coordinator, ``CoordinatorRecordSerde``.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    GroupKey,
    GroupMemberKey,
    GroupTargetAssignmentMemberValue,
    GroupTargetAssignmentMetadataValue,
)
from logstore.segments.kafka.internal_topics.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
)
from logstore.segments.kafka.internal_topics.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.internal_topics.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    SharePartitionKey,
    ShareSnapshotValue,
    ShareUpdateValue,
)
from logstore.segments.kafka.internal_topics.streams_group import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
)
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
)

RecordTypes = Mapping[int, tuple[type[Message], type[Message]]]

#: the records of ``__consumer_offsets``
GROUP_RECORDS: RecordTypes = {
    0: (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (GroupKey, ConsumerGroupMetadataValue),
    4: (GroupKey, ConsumerGroupPartitionMetadataValue),
    5: (GroupMemberKey, ConsumerGroupMemberMetadataValue),
    6: (GroupKey, GroupTargetAssignmentMetadataValue),
    7: (GroupMemberKey, GroupTargetAssignmentMemberValue),
    8: (GroupMemberKey, ConsumerGroupCurrentMemberAssignmentValue),
    10: (GroupMemberKey, ShareGroupMemberMetadataValue),
    11: (GroupKey, ShareGroupMetadataValue),
    12: (GroupKey, GroupTargetAssignmentMetadataValue),
    13: (GroupMemberKey, GroupTargetAssignmentMemberValue),
    14: (GroupMemberKey, ShareGroupCurrentMemberAssignmentValue),
    15: (GroupKey, ShareGroupStatePartitionMetadataValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    17: (GroupKey, StreamsGroupMetadataValue),
    19: (GroupMemberKey, StreamsGroupMemberMetadataValue),
    20: (GroupKey, GroupTargetAssignmentMetadataValue),
    21: (GroupMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (GroupMemberKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (GroupKey, StreamsGroupTopologyValue),
}
#: the records of ``__transaction_state``
TRANSACTION_RECORDS: RecordTypes = {0: (TransactionLogKey, TransactionLogValue)}
#: the records of ``__share_group_state``
SHARE_RECORDS: RecordTypes = {
    0: (SharePartitionKey, ShareSnapshotValue),
    1: (SharePartitionKey, ShareUpdateValue),
}


class UnknownRecordTypeError(MessageError):
    """A key of a type that nobody here knows; a broker passes over such records."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"Found an unknown record type {record_type}")
        self.record_type = record_type


@attrs.frozen
class InternalRecord:
    """A record of an internal topic; a tombstone has neither value nor version."""

    record_type: int
    key: Message
    version: int | None = None
    value: Message | None = None


def decode_internal_record(kinds: RecordTypes, key: bytes, value: bytes | None) -> InternalRecord:
    """
    Return what a record of an internal topic says.

    Raises:
        UnknownRecordTypeError: the key's type is none of `kinds`.
        MessageError: key or value cannot be read, or the value's version is not known.

    """
    record_type = _version(key, "key")
    if record_type not in kinds:
        raise UnknownRecordTypeError(record_type)
    key_kind, value_kind = kinds[record_type]
    # A key has one version, 0; the number in front is the type.
    found = InternalRecord(record_type, _message(key_kind, key, 0, record_type, "key"))
    if value is None:
        return found
    version = _version(value, "value")
    if version not in value_kind.VERSIONS:
        raise MessageError(f"Found an unknown record version {version} for {record_type} type")
    content = _message(value_kind, value, version, version, "value")
    return attrs.evolve(found, version=version, value=content)


def _version(data: bytes, what: str) -> int:
    try:
        return decode_version(data)
    except MessageError:
        raise MessageError(f"Could not read version from {what}'s buffer.") from None


def _message(
    kind: type[Message], data: bytes, version: int, version_shown: int, what: str
) -> Message:
    try:
        return decode_message(kind, data, version, 2)
    except MessageError as error:
        reason = "null" if error.reason is None else error.reason
        raise MessageError(
            f"Could not read record with version {version_shown} from {what}'s buffer "
            f"due to: {reason}."
        ) from error
