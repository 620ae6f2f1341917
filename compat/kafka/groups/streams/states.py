"""The states of a streams group and of its members, and what a heartbeat may tell of the group."""

from __future__ import annotations

from enum import Enum, IntEnum


class StreamsGroupState(Enum):
    """
    Where a group stands; the value is the word that clients see.

    Source: ``StreamsGroup.StreamsGroupState``.
    """

    #: no members; it lives on until its offsets have expired
    EMPTY = "Empty"
    #: topics are missing, or have the wrong number of partitions
    NOT_READY = "NotReady"
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

    Source: ``MemberState`` of package ``streams``.
    """

    #: it has what it shall have
    STABLE = 1
    #: it was told to give tasks back and has not done so
    UNREVOKED_TASKS = 2
    #: others still have tasks that it shall have
    UNRELEASED_TASKS = 3
    #: a newer broker has written something else
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """Return the state of that number, UNKNOWN for one that is not known here."""
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


class StatusCode(IntEnum):
    """
    What a member is told about its group besides its tasks.

    Source: ``StreamsGroupHeartbeatResponse.Status``.
    """

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
