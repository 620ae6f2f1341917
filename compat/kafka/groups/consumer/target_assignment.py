"""
The target assignment of a group: the assignor is asked, and what has changed becomes records.

Source: ``TargetAssignmentBuilder``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.assignors.range_assignor import assign_ranges
from logstore.compat.kafka.groups.consumer.assignors.uniform_assignor import assign_uniformly
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup, names_wanted
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.groups.modern.assignor_spec import Assignor, GroupSpec, MemberSpec
from logstore.compat.kafka.groups.modern.cluster import Cluster, shapes_of
from logstore.compat.kafka.groups.modern.group import NO_TARGET, Target
from logstore.compat.kafka.groups.modern.records import GroupChange

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}


@attrs.frozen
class NewTarget:
    """A target assignment that was worked out, and the records that make it the group's."""

    targets: Mapping[str, Target]
    records: list[GroupChange]


def new_target(
    group: ConsumerGroup,
    epoch: int,
    members: Mapping[str, ConsumerMember],
    regexes: Mapping[str, ResolvedRegex],
    cluster: Cluster,
    assignor_name: str,
    now_ms: int,
) -> NewTarget:
    """Return what the group's `members` shall have from `epoch` on."""
    spec = _spec(group, members, regexes, cluster)
    found = ASSIGNORS[assignor_name](spec)
    targets = {member_id: found.get(member_id, NO_TARGET) for member_id in members}
    changes = [
        records.target(group.group_id, member_id, targets[member_id])
        for member_id in spec.member_ids
        if group.targets.get(member_id) != targets[member_id]
    ]
    return NewTarget(targets, [*changes, records.KIND.assigned_in(group.group_id, epoch, now_ms)])


def topic_ids_wanted(
    member: ConsumerMember, regexes: Mapping[str, ResolvedRegex], cluster: Cluster
) -> frozenset[uuid.UUID]:
    """Return the ids of those topics that a member wants and that exist."""
    shapes = shapes_of(cluster, names_wanted([member], regexes))
    return frozenset(shape.topic_id for shape in shapes.values())


def _spec(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    regexes: Mapping[str, ResolvedRegex],
    cluster: Cluster,
) -> GroupSpec:
    shapes = shapes_of(cluster, names_wanted(members.values(), regexes))
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        names = names_wanted([member], regexes)
        specs[member_id] = MemberSpec(
            topic_ids=frozenset(shapes[name].topic_id for name in names if name in shapes),
            target=group.target_of(member),
            name_count=len(names),
            instance_id=member.instance_id,
        )
    counts = {shape.topic_id: shape.partition_count for shape in shapes.values()}
    return GroupSpec(specs, counts, _are_alike(members))


def _are_alike(members: Mapping[str, ConsumerMember]) -> bool:
    """Tell whether all want the same names, or the same pattern and nothing else."""
    patterns = {member.subscribed_topic_regex for member in members.values()}
    names = {member.subscribed_topic_names for member in members.values()}
    if patterns <= {""}:
        return len(names) <= 1
    return len(patterns) == 1 and names == {frozenset()}
