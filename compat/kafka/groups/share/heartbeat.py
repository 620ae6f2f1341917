"""
A heartbeat on its way through a share group: who speaks, what has changed, what follows from it.

1. The member is new, or says something new about itself; topics may have come or grown, or the
   state of partitions has begun that nobody has yet. Each makes the group's epoch grow.
2. If the target assignment is of an older epoch, and not too fresh, a new one is worked out.
3. The member has what it shall have at once: nobody has to let go of anything.

Nothing is changed here: the outcome has the records that do it, once they are on disk.

Source: ``GroupMetadataManager.shareGroupHeartbeat``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

import attrs

from logstore.compat.kafka.groups.modern.assignor_spec import GroupSpec, MemberSpec
from logstore.compat.kafka.groups.modern.cluster import (
    Cluster,
    TopicShape,
    metadata_hash,
    shapes_of,
)
from logstore.compat.kafka.groups.modern.group import NO_TARGET, Target
from logstore.compat.kafka.groups.modern.hash_order import names_in_order
from logstore.compat.kafka.groups.modern.member import JOINING, MemberState
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.exchange import ShareHeartbeat
from logstore.compat.kafka.groups.share.group import ShareGroup, names_wanted
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.simple_assignor import assign_simply
from logstore.compat.kafka.groups.share.state_partitions import StatePartitions


class Outcome(NamedTuple):
    """What a heartbeat leads to: the member before and after, and the records in between."""

    before: ShareMember
    after: ShareMember
    records: list[GroupChange]
    #: that of the group from now on
    epoch: int
    #: the topics that the group wants, for the next heartbeat to see whether they have changed
    shapes: Mapping[str, TopicShape]


def member_of(group: ShareGroup, beat: ShareHeartbeat) -> ShareMember:
    """
    Return the member that a heartbeat comes from.

    Raises:
        RefusedRequestError: 25 or 110, with the reason.

    """
    epoch = beat.member_epoch
    if epoch == JOINING:
        return group.members.get(beat.member_id) or ShareMember(beat.member_id)
    member = group.member(beat.member_id)
    last = member.previous_member_epoch
    if epoch in (member.member_epoch, last):
        return member
    is_behind = epoch < member.member_epoch
    but = f", and it does not match the previous member epoch ({last})" if is_behind else ""
    raise group.fenced(member, epoch, but)


def told(member: ShareMember, beat: ShareHeartbeat) -> ShareMember:
    """Return a member with what a heartbeat says about it."""
    names = beat.subscribed_topic_names
    return attrs.evolve(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        subscribed_topic_names=member.subscribed_topic_names if names is None else names,
    )


class HeartbeatStep:
    """Works out what follows from one member saying something; asked once."""

    def __init__(
        self, group: ShareGroup, cluster: Cluster, now_ms: int, assignment_interval_ms: int
    ) -> None:
        self._group = group
        self._cluster = cluster
        self._now_ms = now_ms
        self._interval_ms = assignment_interval_ms
        self._records: list[GroupChange] = []

    def outcome(self, before: ShareMember, beat: ShareHeartbeat) -> Outcome:
        """Return what follows from a heartbeat of the member `before`."""
        group, updated = self._group, told(before, beat)
        if updated != before or updated.member_id not in group.members:
            self._records.append(records.member_metadata(group.group_id, updated))
        members = {**group.members, updated.member_id: updated}
        shapes = shapes_of(self._cluster, names_wanted(members))
        has_changed = updated.subscribed_topic_names != before.subscribed_topic_names
        if group.assignment_epoch >= group.epoch:
            has_changed |= group.has_unassigned()
        epoch = self._epoch(shapes, has_changed=has_changed)
        target_epoch, target = self._target(epoch, members, updated.member_id)
        after = self._reconciled(updated, target_epoch, target, is_new_epoch=epoch > group.epoch)
        if after != updated:
            self._records.append(records.current_assignment(group.group_id, after))
        return Outcome(before, after, self._records, epoch, shapes)

    def _epoch(self, shapes: Mapping[str, TopicShape], *, has_changed: bool) -> int:
        """Return the group's epoch, with the record of a new one."""
        group = self._group
        if not has_changed and shapes == group.seen_shapes:
            return group.epoch
        hashed = metadata_hash(shapes)
        if not has_changed and hashed == group.metadata_hash:
            return group.epoch
        self._records.append(records.group_epoch(group.group_id, group.epoch + 1, hashed))
        return group.epoch + 1

    def _target(
        self, epoch: int, members: Mapping[str, ShareMember], member_id: str
    ) -> tuple[int, Target]:
        """Return the target that holds for a member, with the records of a new one of all."""
        group = self._group
        may_assign = group.may_assign(self._interval_ms, self._now_ms)
        if group.assignment_epoch >= epoch or not may_assign:
            return group.assignment_epoch, group.target_of(member_id)
        begun = (group.state_partitions or StatePartitions()).initialized
        shapes = shapes_of(self._cluster, names_in_order(names_wanted(members)))
        spec = self._spec(members, shapes)
        found = assign_simply(
            spec,
            {topic_id: one.partitions for topic_id, one in begun.items()},
            [shape.topic_id for shape in shapes.values()],
        )
        for one in spec.member_ids:
            target = found.get(one, NO_TARGET)
            if group.targets.get(one) != target:
                self._records.append(records.target(group.group_id, one, target))
        self._records.append(records.KIND.assigned_in(group.group_id, epoch, self._now_ms))
        return epoch, found.get(member_id, NO_TARGET)

    def _spec(
        self, members: Mapping[str, ShareMember], shapes: Mapping[str, TopicShape]
    ) -> GroupSpec:
        wanted = {one.subscribed_topic_names for one in members.values()}
        specs = {
            member_id: MemberSpec(
                topic_ids=self._topic_ids(member),
                target=self._group.target_of(member_id),
                name_count=len(member.subscribed_topic_names),
            )
            for member_id, member in members.items()
        }
        counts = {shape.topic_id: shape.partition_count for shape in shapes.values()}
        return GroupSpec(specs, counts, is_homogeneous=len(wanted) == 1)

    def _reconciled(
        self, member: ShareMember, target_epoch: int, target: Target, *, is_new_epoch: bool
    ) -> ShareMember:
        if not is_new_epoch and member.is_reconciled_to(target_epoch):
            return member
        if member.member_epoch != target_epoch:
            member = member.in_epoch(target_epoch)
        elif not is_new_epoch:
            return member
        wanted = self._topic_ids(member)
        assigned = {topic_id: them for topic_id, them in target.items() if topic_id in wanted}
        return attrs.evolve(member, state=MemberState.STABLE, assigned=assigned)

    def _topic_ids(self, member: ShareMember) -> frozenset[uuid.UUID]:
        shapes = shapes_of(self._cluster, member.subscribed_topic_names)
        return frozenset(shape.topic_id for shape in shapes.values())
