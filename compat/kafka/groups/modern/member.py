"""One member of a group whose coordinator assigns: who it is, and the epoch in which it is."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

import attrs

from logstore.compat.kafka.error_codes import ErrorCode

#: the epoch of those who join or come back
JOINING = 0
#: the epoch of those who leave for good
LEAVING = -1
#: the epoch of a static member that will come back, and has its place kept
LEAVING_FOR_A_WHILE = -2


class MemberState(IntEnum):
    """
    Where a member stands, by the number that its record has.

    Source: ``MemberState``.
    """

    #: it has what it shall have
    STABLE = 0
    #: it was told to give partitions back and has not done so
    UNREVOKED_PARTITIONS = 1
    #: others still have partitions that it shall have
    UNRELEASED_PARTITIONS = 2
    #: a newer broker has written something else
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """Return the state of that number, UNKNOWN for one that is not known here."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


@attrs.frozen
class GroupMember:
    """A member as it is after the records that were applied; a change is a new one."""

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    #: within which it must give back what others shall have
    rebalance_timeout_ms: int = -1

    @property
    def is_giving_back(self) -> bool:
        """Tell whether it was told to give something back and has not done so."""
        return False

    @property
    def stale_epoch_error(self) -> ErrorCode:
        """What it is told if it speaks of offsets in another epoch than its own."""
        return ErrorCode.STALE_MEMBER_EPOCH

    def in_epoch(self, epoch: int) -> Self:
        """Return it in another epoch, the one before noted."""
        return attrs.evolve(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)


@attrs.frozen
class ModernMember(GroupMember):
    """
    A member that is given partitions of topics.

    Source: ``ModernGroupMember``.
    """

    state: MemberState = MemberState.STABLE
    subscribed_topic_names: frozenset[str] = frozenset()

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Tell whether it has come as far as the target assignment."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch
