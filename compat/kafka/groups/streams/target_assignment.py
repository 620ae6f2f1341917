"""
The target assignment of a group: the assignor is asked, and what has changed becomes records.

Source: ``TargetAssignmentBuilder`` of package ``streams``.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.modern.hash_order import (
    members_in_order,
    members_in_timeline_order,
)
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.assignors.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologyShape,
)
from logstore.compat.kafka.groups.streams.assignors.sticky import assign_stickily
from logstore.compat.kafka.groups.streams.group import StreamsGroup
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.tasks import NO_TASKS, TargetTasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import ConfiguredTopology


@attrs.frozen
class NewTarget:
    """A target assignment that was worked out, and the records that make it the group's."""

    targets: Mapping[str, TargetTasks]
    records: list[GroupChange]


def new_target(
    group: StreamsGroup,
    epoch: int,
    updated: StreamsMember | None,
    configured: ConfiguredTopology,
    assignment_configs: Mapping[str, str],
    now_ms: int,
) -> NewTarget:
    """Return what the group's members, one of them `updated` or new, shall have from `epoch` on."""
    members = {one: group.members[one] for one in members_in_timeline_order(group.members)}
    if updated is not None:
        members[updated.member_id] = updated
    members = {one: members[one] for one in members_in_order(members)}
    targets: Mapping[str, TargetTasks] = dict.fromkeys(members, NO_TASKS)
    if configured.error is None and configured.subtopologies is not None:
        shapes = {
            name: SubtopologyShape(one.task_count, one.is_stateful)
            for name, one in configured.subtopologies.items()
        }
        specs = {
            name: MemberSpec(member.process_id, group.target_of(name))
            for name, member in members.items()
        }
        standby_count = int(assignment_configs.get("num.standby.replicas", "0"))
        targets = assign_stickily(GroupSpec(specs, shapes, standby_count))
    changes = [
        records.target(group.group_id, name, targets[name])
        for name in members
        if group.targets.get(name) != targets[name]
    ]
    return NewTarget(targets, [*changes, records.KIND.assigned_in(group.group_id, epoch, now_ms)])
