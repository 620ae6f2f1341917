"""
The records that a streams group is made of, each as it goes to ``__consumer_offsets``.

Source: ``StreamsCoordinatorRecordHelpers``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logstore.compat.kafka.groups.modern.records import (
    GroupChange,
    GroupKind,
    of_group,
    of_member,
)
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.tasks import EpochTasks, HeldTasks, TargetTasks, Tasks
from logstore.segments.kafka.internal_topics.consumer_group import (
    GroupKey,
)
from logstore.segments.kafka.internal_topics.streams_group import (
    EpochTaskIds,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
    TaskIds,
)

TOPOLOGY = 23
KIND = GroupKind(
    "streams",
    epoch=(17, StreamsGroupMetadataValue),
    member=(19, StreamsGroupMemberMetadataValue),
    target_epoch=20,
    target=(21, StreamsGroupTargetAssignmentMemberValue),
    current=(22, StreamsGroupCurrentMemberAssignmentValue),
    own={TOPOLOGY: (GroupKey, StreamsGroupTopologyValue)},
)


def group_epoch(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> GroupChange:
    """Return the record of a group's epoch, and of what it was last assigned with."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=_pairs(assignment_configs),
    )
    return of_group(KIND.epoch, group_id, value)


def topology(group_id: str, value: StreamsGroupTopologyValue) -> GroupChange:
    """Return the record of what the application does."""
    return of_group(TOPOLOGY, group_id, value)


def target(group_id: str, member_id: str, tasks: TargetTasks) -> GroupChange:
    """Return the record of what a member shall have."""
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )
    return of_member(KIND.target, group_id, member_id, value)


def member_metadata(group_id: str, member: StreamsMember) -> GroupChange:
    """Return the record of what a member is."""
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=_pairs(member.client_tags),
    )
    return of_member(KIND.member, group_id, member.member_id, value)


def current_assignment(group_id: str, member: StreamsMember) -> GroupChange:
    """Return the record of what a member has, and must give back."""
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_epoch_task_ids(assigned.active),
        standby_tasks=_copies(assigned.standby),
        warmup_tasks=_copies(assigned.warmup),
        active_tasks_pending_revocation=_epoch_task_ids(pending.active),
        standby_tasks_pending_revocation=_copies(pending.standby),
        warmup_tasks_pending_revocation=_copies(pending.warmup),
    )
    return of_member(KIND.current, group_id, member.member_id, value)


def no_group(group_id: str, member_ids: Collection[str]) -> list[GroupChange]:
    """Return the tombstones of a group and of all that is in it."""
    return [
        *KIND.no_members(group_id, member_ids),
        of_group(KIND.epoch, group_id),
        of_group(TOPOLOGY, group_id),
    ]


def target_in(value: StreamsGroupTargetAssignmentMemberValue) -> TargetTasks:
    """Return the tasks that a record says a member shall have."""
    return TargetTasks(
        _tasks_in(value.active_tasks), _tasks_in(value.standby_tasks), _tasks_in(value.warmup_tasks)
    )


def held_in(
    active: tuple[EpochTaskIds, ...],
    standby: tuple[EpochTaskIds, ...],
    warmup: tuple[EpochTaskIds, ...],
    member_epoch: int,
) -> HeldTasks:
    """
    Return the tasks of a record, active ones with the epochs in which they were given.

    Records of releases before 4.3 do not tell; then it was the member's epoch at the latest.
    """
    found: dict[str, dict[int, int]] = {}
    for entry in active:
        epochs = entry.assignment_epochs or ()
        if len(epochs) != len(entry.partitions):
            epochs = (member_epoch,) * len(entry.partitions)
        found[entry.subtopology_id] = dict(zip(entry.partitions, epochs, strict=True))
    return HeldTasks(found, _tasks_in(standby), _tasks_in(warmup))


def _tasks_in(entries: Collection[TaskIds | EpochTaskIds]) -> dict[str, frozenset[int]]:
    return {entry.subtopology_id: frozenset(entry.partitions) for entry in entries}


def _task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name])))
        for name in sorted(tasks)
    )


def _copies(tasks: Tasks) -> tuple[EpochTaskIds, ...]:
    return tuple(
        EpochTaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name])))
        for name in sorted(tasks)
    )


def _epoch_task_ids(tasks: EpochTasks) -> tuple[EpochTaskIds, ...]:
    found: list[EpochTaskIds] = []
    for name, epochs in sorted(tasks.items()):
        partitions = tuple(sorted(epochs))
        found.append(
            EpochTaskIds(
                subtopology_id=name,
                partitions=partitions,
                assignment_epochs=tuple(epochs[one] for one in partitions),
            )
        )
    return tuple(found)


def _pairs(texts: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=key, value=value) for key, value in sorted(texts.items()))
