"""
What groups have in common whose coordinator assigns: members, epochs, a target, records.

Consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) are of this family.

Source: package ``modern`` of Kafka's module ``group-coordinator``, and its ``StreamsGroup``.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import ListedGroup
from logstore.compat.kafka.groups.modern.member import GroupMember
from logstore.compat.kafka.groups.modern.records import GroupChange, GroupKind, encoded
from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition

#: a topic's id and the number of one of its partitions
TopicIdPartition = tuple[uuid.UUID, int]
#: what a member shall have: partitions by topic id
Target = Mapping[uuid.UUID, frozenset[int]]

NO_TARGET: Target = {}
#: that of a group in which nobody wants anything yet; it has no record
FIRST_EPOCH = 1

#: takes in the key and the value of a record
Applier = Callable[[Any, Any], None]


MemberT = TypeVar("MemberT", bound=GroupMember)
TargetT = TypeVar("TargetT")


class ModernGroup(ABC, Generic[MemberT, TargetT]):
    """
    Members, epochs and the target assignment; only :meth:`apply` changes what is on disk.

    A kind of group says how records tell what its members are, have and shall have, and by
    `appliers` what records of its own do.
    Source: ``ModernGroup`` and ``GroupMetadataManager.replay``.
    """

    def __init__(self, kind: GroupKind, group_id: str, appliers: Mapping[int, Applier]) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        #: when the target was worked out, 0 if that is not known
        self.assigned_at_ms = 0
        self.members: dict[str, MemberT] = {}
        self.targets: dict[str, TargetT] = {}
        self._kind = kind
        self._appliers: dict[int, Applier] = {
            kind.epoch: self._apply_epoch,
            kind.member: self._apply_member,
            kind.target_epoch: self._apply_target_epoch,
            kind.target: self._apply_target,
            kind.current: self._apply_current,
            **appliers,
        }

    # what it is

    def may_assign(self, interval_ms: int, now_ms: int) -> bool:
        """
        Tell whether so much time has passed since the last target assignment (KIP-1263).

        Source: ``GroupMetadataManager.canComputeNextTargetAssignment``.
        """
        last_ms = self.assigned_at_ms
        return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms

    @property
    @abstractmethod
    def state(self) -> Enum:
        """Where the group stands; the value is the word that clients see."""

    @property
    def is_empty(self) -> bool:
        """Tell whether it has no members."""
        return not self.members

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody is in it or about to be."""
        return self.is_empty

    @property
    def is_of_consumers(self) -> bool:
        """Tell whether the broker knows what the members read: it does."""
        return True

    def member(self, member_id: str) -> MemberT:
        """
        Return a member.

        Raises:
            RefusedRequestError: 25, it is none.

        """
        found = self.members.get(member_id)
        if found is None:
            text = f"Member {member_id} is not a member of group {self.group_id}."
            raise RefusedRequestError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        return found

    def fenced(self, member: MemberT, epoch: int, but: str = "") -> RefusedRequestError:
        """Return what a member is told that claims to be in an `epoch` in which it is not."""
        which = "greater" if epoch > member.member_epoch else "smaller"
        return RefusedRequestError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self._kind.name} group member has a {which} member epoch ({epoch}) than the one "
            f"known by the group coordinator ({member.member_epoch}){but}. The member must abandon "
            "all its partitions and rejoin.",
        )

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int:
        """Return from when on the retention time of a committed offset counts: its commit."""
        return commit_timestamp_ms

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for offsets, else what to tell; who says nothing may."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        if member_id is None:  # over which Kafka stumbles
            return ErrorCode.UNKNOWN_SERVER_ERROR
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_current = member.member_epoch == member_epoch
        return ErrorCode.NONE if is_current else member.stale_epoch_error

    def listed(self) -> ListedGroup:
        """Return the group's line in a list."""
        return ListedGroup(self.group_id, self._kind.name, self.state, self._kind.name)

    def tombstones(self) -> list[GroupRecord]:
        """Return what takes the group out of the log."""
        return [encoded(record) for record in self._dead()]

    @abstractmethod
    def _dead(self) -> list[GroupChange]: ...

    # what its records change

    def apply(self, record: GroupChange) -> None:
        """Take in the next record."""
        self._appliers[record.record_type](record.key, record.value)

    @abstractmethod
    def _apply_member(self, key: Any, value: Any) -> None: ...

    @abstractmethod
    def _apply_current(self, key: Any, value: Any) -> None: ...

    @abstractmethod
    def _target_in(self, value: Any) -> TargetT: ...

    def _apply_epoch(self, key: Any, value: Any) -> None:
        del key
        if value is not None:  # else the group is at its end
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _apply_target_epoch(self, key: Any, value: Any) -> None:
        del key
        if value is not None:
            self.assignment_epoch = value.assignment_epoch
            self.assigned_at_ms = value.assignment_timestamp

    def _apply_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = self._target_in(value)


def partitions_in(entries: Iterable[TopicPartition]) -> dict[uuid.UUID, frozenset[int]]:
    """Return the partitions of a record."""
    return {entry.topic_id: frozenset(entry.partitions) for entry in entries}
