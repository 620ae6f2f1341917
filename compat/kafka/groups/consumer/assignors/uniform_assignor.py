"""
``uniform``: everybody gets as many partitions as the others, and keeps what can be kept.

Source: ``UniformAssignor``, ``UniformHomogeneousAssignmentBuilder``.
"""

from __future__ import annotations

import uuid

from logstore.compat.kafka.groups.consumer.assignors.balanced_topics import assign_unlike_members
from logstore.compat.kafka.groups.modern.assignor_spec import Assignment, GroupSpec
from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition
from logstore.compat.kafka.groups.modern.hash_order import (
    partitions_in_order,
    topic_set_in_order,
    topics_in_order,
)

_MutableTarget = dict[uuid.UUID, set[int]]


def assign_uniformly(group: GroupSpec) -> Assignment:
    """Return as even an assignment as what the members want allows."""
    if not group.members:
        return {}
    return assign_like_members(group) if group.is_homogeneous else assign_unlike_members(group)


def assign_like_members(group: GroupSpec) -> Assignment:
    """Return the assignment of members who all want the same: sizes differ by one at most."""
    member_ids = group.member_ids
    first = group.members[member_ids[0]]
    if not first.topic_ids:
        return {}
    assigned = group.assigned()
    in_order = topic_set_in_order(first.topic_ids, first.name_count)
    unassigned = [
        (topic_id, index)
        for topic_id in in_order
        for index in range(group.partition_counts[topic_id])
        if (topic_id, index) not in assigned
    ]
    quota, extra = divmod(
        sum(group.partition_counts[topic_id] for topic_id in first.topic_ids), len(member_ids)
    )
    kept: dict[str, _MutableTarget] = {}
    room: dict[str, int] = {}
    for position, member_id in enumerate(member_ids):
        old = group.members[member_id].target
        kept[member_id], left, revoked = _keep(old, first.topic_ids, quota + (extra > 0))
        unassigned += revoked
        if extra > 0 and left > 0 and len(member_ids) - position > extra:
            left -= 1  # one partition more is for those who have it already, as long as they come
        elif extra > 0:
            extra -= 1
        room[member_id] = left
    position = 0
    for member_id in member_ids:
        for topic_id, index in unassigned[position : position + room[member_id]]:
            kept[member_id].setdefault(topic_id, set()).add(index)
            position += 1
    assert position == len(unassigned), "quotas add up to all partitions"
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in target.items()}
        for member_id, target in kept.items()
    }


def _keep(
    old: Target, wanted: frozenset[uuid.UUID], room: int
) -> tuple[_MutableTarget, int, list[TopicIdPartition]]:
    """Return what a member keeps, how much room is left, and what it has too many."""
    kept: _MutableTarget = {}
    revoked: list[TopicIdPartition] = []
    for topic_id in topics_in_order(old):
        if topic_id not in wanted:
            continue
        for index in partitions_in_order(old[topic_id]):
            if room > 0:
                room -= 1
                kept.setdefault(topic_id, set()).add(index)
            else:
                revoked.append((topic_id, index))
    return kept, room, revoked
