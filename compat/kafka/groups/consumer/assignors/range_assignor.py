"""
``range``: of every topic each member gets a run of partitions, the same run of each if it can be.

Static members come first, by instance id, then the others by member id. Nothing is sticky: who has
the same place in that order gets the same partitions.

Source: ``RangeAssignor``.
"""

from __future__ import annotations

import uuid
from collections import Counter

from logstore.compat.kafka.groups.modern.assignor_spec import Assignment, GroupSpec


def assign_ranges(group: GroupSpec) -> Assignment:
    """Return runs of partitions, the first members' one longer where they do not divide."""
    in_order = sorted(group.members, key=lambda one: _place(group, one))
    subscriber_counts = Counter(
        topic_id for member in group.members.values() for topic_id in member.topic_ids
    )
    given: Counter[uuid.UUID] = Counter()
    starts: Counter[uuid.UUID] = Counter()
    assignment: Assignment = {}
    for member_id in in_order:
        target: dict[uuid.UUID, frozenset[int]] = {}
        for topic_id in group.members[member_id].topic_ids:
            quota, extra = divmod(group.partition_counts[topic_id], subscriber_counts[topic_id])
            start = starts[topic_id]
            end = start + quota + (given[topic_id] < extra)
            given[topic_id] += 1
            starts[topic_id] = end
            if start < end:
                target[topic_id] = frozenset(range(start, end))
        assignment[member_id] = target
    return assignment


def _place(group: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    """Return what sorts members as Java does, which compares UTF-16 units."""
    instance_id = group.members[member_id].instance_id
    is_dynamic = instance_id is None
    return is_dynamic, (instance_id or member_id).encode("utf-16-be", "surrogatepass")
