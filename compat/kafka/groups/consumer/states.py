"""The states of a consumer group."""

from __future__ import annotations

from enum import Enum


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
