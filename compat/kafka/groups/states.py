"""The five states of a group, and which follow which."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """
    Where a group stands; the value is the word that clients see.

    Source: ``ClassicGroupState``.
    """

    #: no members; lives on until its offsets have expired, also home of simple consumers
    EMPTY = "Empty"
    #: collects joins: whoever does not come back in time is left behind
    PREPARING_REBALANCE = "PreparingRebalance"
    #: the generation is fixed, the leader works out who gets what
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: everyone has an assignment
    STABLE = "Stable"
    #: removed, or moved away; whoever still holds it is told to look again
    DEAD = "Dead"


#: Which states may follow a state; everything else is a programmer's error.
NEXT_STATES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}
