"""One share group: what its records say, and what can be asked about it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.modern.group import (
    NO_TARGET,
    Applier,
    ModernGroup,
    Target,
    partitions_in,
)
from logstore.compat.kafka.groups.modern.member import LEAVING, MemberState
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.state_partitions import StatePartitions
from logstore.compat.kafka.groups.share.states import ShareGroupState

ASSIGNOR = "simple"


class ShareGroup(ModernGroup[ShareMember, Target]):
    """
    A group whose members read the same partitions; what it has read is kept record by record.

    `wall_ms` is the clock by which an unfinished beginning of states is waited for.
    Source: ``ShareGroup``.
    """

    def __init__(self, group_id: str, wall_ms: Callable[[], int]) -> None:
        appliers: dict[int, Applier] = {records.STATE_PARTITIONS: self._apply_state_partitions}
        super().__init__(records.KIND, group_id, appliers)
        #: the topics that were looked at last, to see whether they have changed; not in the log
        self.seen_shapes: Mapping[str, TopicShape] | None = None
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

    # what its records change

    def _dead(self) -> list[GroupChange]:
        return records.no_group(self.group_id, list(self.members))

    def _target_in(self, value: Any) -> Target:
        return partitions_in(value.topic_partitions)

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
                assigned=partitions_in(value.assigned_partitions),
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
