"""
A record about a group of KIP-848 or KIP-932, read or to be written: a type, a key and a value.

Which types there are and what they hold is said by each kind of group.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.offsets_log import GroupRecord, GroupRecordError
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
    decode_versioned,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.consumer_group import GroupKey, GroupMemberKey
from logstore.segments.kafka.internal_topics.schema import Message

#: keys and values have one version; the number in front of a key is its type
_VERSION = 0
_TYPE_BYTES = 2

#: classes of key and value, by type
RecordKinds = Mapping[int, tuple[type[Message], type[Message]]]


@attrs.frozen
class GroupChange:
    """A record, read: what of a group is so from now on, or is no more (None)."""

    record_type: int
    key: Message
    value: Message | None = None

    @property
    def group_id(self) -> str:
        """Return which group it is about."""
        group_id: str = getattr(self.key, "group_id")  # noqa: B009 - every key of ours has one
        return group_id


def encoded(record: GroupChange) -> GroupRecord:
    """Return a record as the log takes it."""
    value = record.value
    return (
        encode_versioned(record.key, record.record_type),
        None if value is None else encode_versioned(value, _VERSION),
    )


def decoded(kinds: RecordKinds, key: bytes, value: bytes | None) -> GroupChange | None:
    """
    Return what a record of the log says, None if its type is none of `kinds`.

    Raises:
        GroupRecordError: it is of such a type and cannot be read.

    """
    try:
        record_type = decode_version(key)
        found = kinds.get(record_type)
        if found is None:
            return None
        about = decode_message(found[0], key, _VERSION, _TYPE_BYTES)
        told = None if value is None else decode_versioned(found[1], value)[1]
    except MessageError as error:
        raise GroupRecordError(str(error)) from error
    return GroupChange(record_type, about, told)


def of_group(record_type: int, group_id: str, value: Message | None = None) -> GroupChange:
    """Return a record about a group as a whole."""
    return GroupChange(record_type, GroupKey(group_id=group_id), value)


def of_member(
    record_type: int, group_id: str, member_id: str, value: Message | None = None
) -> GroupChange:
    """Return a record about one member."""
    return GroupChange(record_type, GroupMemberKey(group_id=group_id, member_id=member_id), value)
