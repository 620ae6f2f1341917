"""
The records that a consumer group is made of, each as it goes to ``__consumer_offsets``.

Source: ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

import attrs

from logstore.compat.kafka.groups.consumer.member import ConsumerMember, HeldPartitions
from logstore.compat.kafka.groups.modern.group import Target
from logstore.compat.kafka.groups.modern.records import (
    GroupChange,
    GroupKind,
    of_group,
    of_member,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    EpochTopicPartitions,
    GroupKey,
    GroupTargetAssignmentMemberValue,
    TopicPartition,
)

PARTITION_METADATA = 4
REGEX = 16
KIND = GroupKind(
    "consumer",
    epoch=(3, ConsumerGroupMetadataValue),
    member=(5, ConsumerGroupMemberMetadataValue),
    target_epoch=6,
    target=(7, GroupTargetAssignmentMemberValue),
    current=(8, ConsumerGroupCurrentMemberAssignmentValue),
    own={
        PARTITION_METADATA: (GroupKey, ConsumerGroupPartitionMetadataValue),
        REGEX: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    },
)


@attrs.frozen
class ResolvedRegex:
    """The topics that a pattern means; `version` is a number of the cluster's metadata."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupChange:
    """Return the record of a group's epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return of_group(KIND.epoch, group_id, value)


def target(group_id: str, member_id: str, partitions: Target) -> GroupChange:
    """Return the record of what a member shall have."""
    value = GroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in partitions.items()
        )
    )
    return of_member(KIND.target, group_id, member_id, value)


def member_metadata(group_id: str, member: ConsumerMember) -> GroupChange:
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
    return of_member(KIND.member, group_id, member.member_id, value)


def current_assignment(group_id: str, member: ConsumerMember) -> GroupChange:
    """Return the record of what a member has, and must give back."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_held(member.assigned),
        partitions_pending_revocation=_held(member.pending_revocation),
    )
    return of_member(KIND.current, group_id, member.member_id, value)


def resolved_regex(group_id: str, regex: str, resolved: ResolvedRegex) -> GroupChange:
    """Return the record of what a pattern means."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    return attrs.evolve(no_regex(group_id, regex), value=value)


def no_regex(group_id: str, regex: str) -> GroupChange:
    """Return the tombstone of a pattern."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return GroupChange(REGEX, key)


def no_partition_metadata(group_id: str) -> GroupChange:
    """Return the tombstone of what releases before 4.1 kept of topics."""
    return of_group(PARTITION_METADATA, group_id)


def no_group(
    group_id: str, member_ids: Collection[str], regexes: Collection[str]
) -> list[GroupChange]:
    """Return the tombstones of a group and of all that is in it."""
    return [
        *KIND.no_members(group_id, member_ids),
        *(no_regex(group_id, regex) for regex in regexes),
        no_partition_metadata(group_id),
        of_group(KIND.epoch, group_id),
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
