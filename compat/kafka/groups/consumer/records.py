"""
The records that a consumer group is made of, each as it goes to ``__consumer_offsets``.

Source: ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

import attrs

from logstore.compat.kafka.groups.consumer.member import ConsumerMember, HeldPartitions, Target
from logstore.compat.kafka.groups.offsets_log import GroupRecord, GroupRecordError
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_version,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    EpochTopicPartitions,
    GroupKey,
    GroupMemberKey,
    GroupTargetAssignmentMemberValue,
    GroupTargetAssignmentMetadataValue,
    TopicPartition,
)
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    InternalRecord,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.schema import Message

EPOCH = 3
PARTITION_METADATA = 4
MEMBER = 5
TARGET_EPOCH = 6
TARGET = 7
CURRENT = 8
REGEX = 16
TYPES = frozenset({EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX})

_VALUE_VERSION = 0


@attrs.frozen
class ResolvedRegex:
    """The topics that a pattern means; `version` is a number of the cluster's metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def encoded(record: InternalRecord) -> GroupRecord:
    """Return a record as the log takes it."""
    value = record.value
    return (
        encode_versioned(record.key, record.record_type),
        None if value is None else encode_versioned(value, _VALUE_VERSION),
    )


def decoded(key: bytes, value: bytes | None) -> InternalRecord | None:
    """
    Return what a record of the log says about a consumer group, None if it is of another kind.

    Raises:
        GroupRecordError: it is of that kind and cannot be read.

    """
    try:
        if decode_version(key) not in TYPES:
            return None
        return decode_internal_record(GROUP_RECORDS, key, value)
    except MessageError as error:
        raise GroupRecordError(str(error)) from error


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> InternalRecord:
    """Return the record of a group's epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _of_group(EPOCH, group_id, value)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> InternalRecord:
    """Return the record of the epoch in which the target assignment was made, and when."""
    value = GroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return _of_group(TARGET_EPOCH, group_id, value)


def target(group_id: str, member_id: str, partitions: Target) -> InternalRecord:
    """Return the record of what a member shall have."""
    value = GroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in partitions.items()
        )
    )
    return _of_member(TARGET, group_id, member_id, value)


def member_metadata(group_id: str, member: ConsumerMember) -> InternalRecord:
    """Return the record of what a member is and wants."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return _of_member(MEMBER, group_id, member.member_id, value)


def current_assignment(group_id: str, member: ConsumerMember) -> InternalRecord:
    """Return the record of what a member has, and must give back."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_held(member.assigned),
        partitions_pending_revocation=_held(member.pending_revocation),
    )
    return _of_member(CURRENT, group_id, member.member_id, value)


def resolved_regex(group_id: str, regex: str, resolved: ResolvedRegex) -> InternalRecord:
    """Return the record of what a pattern means."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    return attrs.evolve(no_regex(group_id, regex), version=_VALUE_VERSION, value=value)


def no_regex(group_id: str, regex: str) -> InternalRecord:
    """Return the tombstone of a pattern."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return InternalRecord(REGEX, key)


def no_partition_metadata(group_id: str) -> InternalRecord:
    """Return the tombstone of what releases before 4.1 kept of topics."""
    return _of_group(PARTITION_METADATA, group_id)


def no_member(group_id: str, member_id: str) -> list[InternalRecord]:
    """Return the tombstones of a member."""
    return [_of_member(kind, group_id, member_id) for kind in (CURRENT, TARGET, MEMBER)]


def no_group(
    group_id: str, member_ids: Collection[str], regexes: Collection[str]
) -> list[InternalRecord]:
    """Return the tombstones of a group and of all that is in it."""
    return [
        *(_of_member(CURRENT, group_id, member_id) for member_id in member_ids),
        *(_of_member(TARGET, group_id, member_id) for member_id in member_ids),
        _of_group(TARGET_EPOCH, group_id),
        *(_of_member(MEMBER, group_id, member_id) for member_id in member_ids),
        *(no_regex(group_id, regex) for regex in regexes),
        no_partition_metadata(group_id),
        _of_group(EPOCH, group_id),
    ]


def held_in(entries: tuple[EpochTopicPartitions, ...], member_epoch: int) -> HeldPartitions:
    """
    Return the partitions of a record with the epochs in which they were given.

    Records of releases before 4.3 do not tell; then it was the member's epoch at the latest.
    """
    found: dict[uuid.UUID, Mapping[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs or ()
        if len(epochs) != len(entry.partitions):
            epochs = (member_epoch,) * len(entry.partitions)
        found[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=True))
    return found


def _held(held: HeldPartitions) -> tuple[EpochTopicPartitions, ...]:
    return tuple(
        EpochTopicPartitions(
            topic_id=topic_id,
            partitions=tuple(partitions),
            assignment_epochs=tuple(partitions.values()),
        )
        for topic_id, partitions in held.items()
    )


def _of_group(kind: int, group_id: str, value: Message | None = None) -> InternalRecord:
    version = None if value is None else _VALUE_VERSION
    return InternalRecord(kind, GroupKey(group_id=group_id), version, value)


def _of_member(
    kind: int, group_id: str, member_id: str, value: Message | None = None
) -> InternalRecord:
    version = None if value is None else _VALUE_VERSION
    key = GroupMemberKey(group_id=group_id, member_id=member_id)
    return InternalRecord(kind, key, version, value)
