"""
A record about a group that is not classic, read or to be written: a type, a key and a value.

Every kind of group has five types of records in common, and some of its own (:class:`GroupKind`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from logstore.compat.kafka.groups.offsets_log import GroupRecord, GroupRecordError
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
    decode_versioned,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    GroupKey,
    GroupMemberKey,
    GroupTargetAssignmentMetadataValue,
)
from logstore.segments.kafka.internal_topics.schema import Message

#: keys and values have one version; the number in front of a key is its type
_VERSION = 0
_TYPE_BYTES = 2

#: the classes of a record's key and value
KeyAndValue = tuple[type[Message], type[Message]]


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


def of_group(record_type: int, group_id: str, value: Message | None = None) -> GroupChange:
    """Return a record about a group as a whole."""
    return GroupChange(record_type, GroupKey(group_id=group_id), value)


def of_member(
    record_type: int, group_id: str, member_id: str, value: Message | None = None
) -> GroupChange:
    """Return a record about one member."""
    return GroupChange(record_type, GroupMemberKey(group_id=group_id, member_id=member_id), value)


class GroupKind:
    """
    A kind of group: what clients call it, and the types of the records that it is made of.

    Each type comes with the class of its value; types that other kinds do not have are its `own`.
    """

    def __init__(
        self,
        name: str,
        *,
        epoch: tuple[int, type[Message]],
        member: tuple[int, type[Message]],
        target_epoch: int,
        target: tuple[int, type[Message]],
        current: tuple[int, type[Message]],
        own: Mapping[int, KeyAndValue],
    ) -> None:
        self.name = name
        #: of the group's epoch; its tombstone is the end of the group
        self.epoch = epoch[0]
        #: of what a member is
        self.member = member[0]
        #: of the epoch in which it was worked out what members shall have
        self.target_epoch = target_epoch
        #: of what a member shall have
        self.target = target[0]
        #: of what a member has
        self.current = current[0]
        self._classes: dict[int, KeyAndValue] = {
            self.epoch: (GroupKey, epoch[1]),
            self.member: (GroupMemberKey, member[1]),
            self.target_epoch: (GroupKey, GroupTargetAssignmentMetadataValue),
            self.target: (GroupMemberKey, target[1]),
            self.current: (GroupMemberKey, current[1]),
            **own,
        }

    def decoded(self, key: bytes, value: bytes | None) -> GroupChange | None:
        """
        Return what a record of the log says about such a group, None if it is of another kind.

        Raises:
            GroupRecordError: it is of this kind and cannot be read.

        """
        try:
            record_type = decode_version(key)
            found = self._classes.get(record_type)
            if found is None:
                return None
            about = decode_message(found[0], key, _VERSION, _TYPE_BYTES)
            told = None if value is None else decode_versioned(found[1], value)[1]
        except MessageError as error:
            raise GroupRecordError(str(error)) from error
        return GroupChange(record_type, about, told)

    def assigned_in(self, group_id: str, epoch: int, timestamp_ms: int) -> GroupChange:
        """Return the record of the epoch in which the target assignment was made, and when."""
        value = GroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        )
        return of_group(self.target_epoch, group_id, value)

    def no_member(self, group_id: str, member_id: str) -> list[GroupChange]:
        """Return the tombstones of a member."""
        types = (self.current, self.target, self.member)
        return [of_member(one, group_id, member_id) for one in types]

    def no_members(self, group_id: str, member_ids: Collection[str]) -> list[GroupChange]:
        """Return the tombstones of all members and of their target, as they go with a group."""
        return [
            *(of_member(self.current, group_id, member_id) for member_id in member_ids),
            *(of_member(self.target, group_id, member_id) for member_id in member_ids),
            of_group(self.target_epoch, group_id),
            *(of_member(self.member, group_id, member_id) for member_id in member_ids),
        ]
