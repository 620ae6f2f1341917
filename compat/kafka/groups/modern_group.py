"""
What groups have in common whose coordinator assigns partitions (KIP-848, KIP-932).

Source: package ``modern`` of Kafka's module ``group-coordinator``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

import attrs

from logstore.compat.kafka.groups.consumer.cluster import TopicShape
from logstore.compat.kafka.groups.consumer.states import MemberState
from logstore.compat.kafka.groups.group_records import GroupChange

#: the epoch of those who join or come back
JOINING = 0
#: the epoch of those who leave for good
LEAVING = -1

#: a topic's id and the number of one of its partitions
TopicIdPartition = tuple[uuid.UUID, int]
#: what a member shall have: partitions by topic id
Target = Mapping[uuid.UUID, frozenset[int]]

NO_TARGET: Target = {}
#: that of a group in which nobody wants anything yet; it has no record
FIRST_EPOCH = 1


@attrs.frozen
class ModernMember:
    """
    A member as it is after the records that were applied; a change is a new one.

    Source: ``ModernGroupMember``.
    """

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()

    def in_epoch(self, epoch: int) -> Self:
        """Return it in another epoch, the one before noted."""
        return attrs.evolve(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Tell whether it has come as far as the target assignment."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


MemberT = TypeVar("MemberT", bound=ModernMember)


class ModernGroup(Generic[MemberT]):
    """
    Members, epochs and the target assignment; only :meth:`apply` changes them.

    A kind of group says by `appliers` which types of records do what.
    Source: ``ModernGroup``.
    """

    def __init__(self, group_id: str, appliers: Mapping[int, Callable[[Any, Any], None]]) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        #: when the target was worked out, 0 if that is not known
        self.assigned_at_ms = 0
        self.members: dict[str, MemberT] = {}
        self.targets: dict[str, Target] = {}
        #: the topics that were looked at last, to see whether they have changed; not in the log
        self.seen_shapes: Mapping[str, TopicShape] | None = None
        self._appliers = appliers

    @property
    def is_empty(self) -> bool:
        """Tell whether it has no members."""
        return not self.members

    def apply(self, record: GroupChange) -> None:
        """Take in the next record."""
        self._appliers[record.record_type](record.key, record.value)

    def _apply_epoch(self, key: Any, value: Any) -> None:
        del key
        self.epoch = FIRST_EPOCH if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _apply_target_epoch(self, key: Any, value: Any) -> None:
        del key
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assigned_at_ms = 0 if value is None else value.assignment_timestamp

    def _apply_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = {
                entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
            }
