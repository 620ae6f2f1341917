"""The states of a consumer group and of its members."""

from __future__ import annotations

from enum import Enum, IntEnum


class ConsumerGroupState(Enum):
    """
    Where a group stands; the value is the word that clients see.

    Source: ``ConsumerGroup.ConsumerGroupState``.
    """

    #: no members; it lives on until its offsets have expired
    EMPTY = "Empty"
    #: something has changed and nobody has worked out yet what follows from it
    ASSIGNING = "Assigning"
    #: not every member has come as far as the target yet
    RECONCILING = "Reconciling"
    #: everyone has what it shall have
    STABLE = "Stable"
    #: not there
    DEAD = "Dead"


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
