"""One share group: what its records say, and what can be asked about it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.groups.consumer.states import MemberState
from logstore.compat.kafka.groups.exchange import ListedGroup
from logstore.compat.kafka.groups.group_records import encoded
from logstore.compat.kafka.groups.modern_group import (
    LEAVING,
    NO_TARGET,
    ModernGroup,
    Target,
)
from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.exchange import DescribedShareGroup
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.state_partitions import StatePartitions
from logstore.compat.kafka.groups.share.states import ShareGroupState

PROTOCOL_TYPE = "share"
ASSIGNOR = "simple"


class ShareGroup(ModernGroup[ShareMember]):
    """
    The state of a share group; only :meth:`apply` changes it.

    `wall_ms` is the clock by which an unfinished beginning of states is waited for.
    Source: ``ShareGroup`` and ``GroupMetadataManager.replay``.
    """

    #: how clients call this kind of group
    group_type = "share"

    def __init__(self, group_id: str, wall_ms: Callable[[], int]) -> None:
        appliers: dict[int, Callable[[Any, Any], None]] = {
            records.MEMBER: self._apply_member,
            records.EPOCH: self._apply_epoch,
            records.TARGET_EPOCH: self._apply_target_epoch,
            records.TARGET: self._apply_target,
            records.CURRENT: self._apply_current,
            records.STATE_PARTITIONS: self._apply_state_partitions,
        }
        super().__init__(group_id, appliers)
        #: None until a first record tells
        self.state_partitions: StatePartitions | None = None
        self._wall_ms = wall_ms

    # what it is

    @property
    def state(self) -> ShareGroupState:
        """Where the group stands."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """The topics that somebody wants."""
        return names_wanted(self.members)

    def target_of(self, member_id: str) -> Target:
        """Return what a member shall have."""
        return self.targets.get(member_id, NO_TARGET)

    def assigned_partitions(self) -> dict[uuid.UUID, set[int]]:
        """Return by topic what somebody shall have."""
        found: dict[uuid.UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                found.setdefault(topic_id, set()).update(partitions)
        return found

    def has_unassigned(self) -> bool:
        """Tell whether partitions whose state has begun are wanted, and nobody shall have them."""
        if self.is_empty or self.state_partitions is None:
            return False
        wanted, assigned = self.subscribed_topic_names, self.assigned_partitions()
        return any(
            one.name in wanted and one.partitions != frozenset(assigned.get(topic_id, ()))
            for topic_id, one in self.state_partitions.initialized.items()
        )

    def listed(self) -> ListedGroup:
        """Return the group's line in a list."""
        return ListedGroup(self.group_id, PROTOCOL_TYPE, self.state, self.group_type)

    def described(self) -> DescribedShareGroup:
        """Return the group as administrators see it."""
        return DescribedShareGroup(
            self.group_id,
            state=self.state,
            epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            assignor=ASSIGNOR,
            members=tuple(self.members.values()),
        )

    def tombstones(self) -> list[GroupRecord]:
        """Return what takes the group out of the log."""
        return [encoded(record) for record in records.no_group(self.group_id, list(self.members))]

    # what its records change

    def _apply_member(self, key: Any, value: Any) -> None:
        if value is None:
            self.members.pop(key.member_id, None)
            return
        self.members[key.member_id] = attrs.evolve(
            self._member(key.member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def _apply_current(self, key: Any, value: Any) -> None:
        member = self._member(key.member_id)
        if value is not None:
            self.members[key.member_id] = attrs.evolve(
                member,
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState.of(value.state),
                assigned={
                    entry.topic_id: frozenset(entry.partitions)
                    for entry in value.assigned_partitions
                },
            )
        elif key.member_id in self.members:
            self.members[key.member_id] = attrs.evolve(
                member, member_epoch=LEAVING, previous_member_epoch=LEAVING, assigned={}
            )

    def _apply_state_partitions(self, key: Any, value: Any) -> None:
        del key
        self.state_partitions = (
            None if value is None else records.partitions_in(value, self._wall_ms())
        )

    def _member(self, member_id: str) -> ShareMember:
        return self.members.get(member_id) or ShareMember(member_id)


def names_wanted(members: Mapping[str, ShareMember]) -> frozenset[str]:
    """Return the topics that these members want."""
    return frozenset[str]().union(*(one.subscribed_topic_names for one in members.values()))
