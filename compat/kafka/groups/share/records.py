"""
The records that a share group is made of, each as it goes to ``__consumer_offsets``.

Source: ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from uuid import UUID

from logstore.compat.kafka.groups.modern.group import Target
from logstore.compat.kafka.groups.modern.hash_order import numbers_in_order, topics_in_order
from logstore.compat.kafka.groups.modern.records import (
    GroupChange,
    GroupKind,
    of_group,
    of_member,
)
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.state_partitions import (
    PartitionsByTopic,
    StatePartitions,
    TopicPartitions,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    GroupKey,
    GroupTargetAssignmentMemberValue,
    TopicPartition,
)
from logstore.segments.kafka.internal_topics.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

STATE_PARTITIONS = 15
KIND = GroupKind(
    "share",
    epoch=(11, ShareGroupMetadataValue),
    member=(10, ShareGroupMemberMetadataValue),
    target_epoch=12,
    target=(13, GroupTargetAssignmentMemberValue),
    current=(14, ShareGroupCurrentMemberAssignmentValue),
    own={STATE_PARTITIONS: (GroupKey, ShareGroupStatePartitionMetadataValue)},
)


def member_metadata(group_id: str, member: ShareMember) -> GroupChange:
    """Return the record of what a member is and wants."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
    )
    return of_member(KIND.member, group_id, member.member_id, value)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupChange:
    """Return the record of a group's epoch."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return of_group(KIND.epoch, group_id, value)


def target(group_id: str, member_id: str, partitions: Target) -> GroupChange:
    """Return the record of what a member shall have."""
    value = GroupTargetAssignmentMemberValue(topic_partitions=topic_partitions(partitions))
    return of_member(KIND.target, group_id, member_id, value)


def current_assignment(group_id: str, member: ShareMember) -> GroupChange:
    """Return the record of what a member has."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=topic_partitions(member.assigned),
    )
    return of_member(KIND.current, group_id, member.member_id, value)


def state_partitions(
    group_id: str, partitions: StatePartitions, name_of: Callable[[UUID], str]
) -> GroupChange:
    """Return the record of the partitions that a group has a state for."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topics(partitions.initializing),
        initialized_topics=_topics(partitions.initialized),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic_id, topic_name=name_of(topic_id))
            for topic_id in topics_in_order(partitions.deleting)
        ),
    )
    return of_group(STATE_PARTITIONS, group_id, value)


def no_group(group_id: str, member_ids: Collection[str] = ()) -> list[GroupChange]:
    """Return the tombstones of a group and of all that is in it."""
    return [
        *KIND.no_members(group_id, member_ids),
        of_group(STATE_PARTITIONS, group_id),
        of_group(KIND.epoch, group_id),
    ]


def partitions_in(value: ShareGroupStatePartitionMetadataValue, read_at_ms: int) -> StatePartitions:
    """Return the partitions of a record; what is being begun counts from `read_at_ms` on."""
    return StatePartitions(
        _by_topic(value.initializing_topics, read_at_ms),
        _by_topic(value.initialized_topics, read_at_ms),
        frozenset(topic.topic_id for topic in value.deleting_topics),
    )


def topic_partitions(partitions: Target) -> tuple[TopicPartition, ...]:
    """Return partitions as records and messages have them, in the order of Java's maps."""
    return tuple(
        TopicPartition(
            topic_id=topic_id, partitions=tuple(numbers_in_order(sorted(partitions[topic_id])))
        )
        for topic_id in topics_in_order(partitions)
    )


def _topics(partitions: PartitionsByTopic) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=partitions[topic_id].name,
            partitions=tuple(numbers_in_order(sorted(partitions[topic_id].partitions))),
        )
        for topic_id in topics_in_order(partitions)
    )


def _by_topic(topics: Iterable[TopicPartitionsInfo], read_at_ms: int) -> PartitionsByTopic:
    return {
        topic.topic_id: TopicPartitions(topic.topic_name, frozenset(topic.partitions), read_at_ms)
        for topic in topics
    }
