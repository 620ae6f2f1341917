from __future__ import annotations

import itertools

import pytest

from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.states import NEXT_STATES, GroupState
from tests.compat.kafka.groups.rehearsal import Rehearsal

# From ClassicGroupState: the states that each state may be entered from.
VALID_PREVIOUS = {
    "Empty": {"PreparingRebalance"},
    "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty"},
}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(GroupState, repeat=2)))
def test_only_kafkas_transitions_are_possible(old: GroupState, new: GroupState) -> None:
    """A group moves exactly along Kafka's table; every other move is stopped."""
    group = Group("g", Rehearsal().groups.surroundings)
    group.state = old
    if old.value in VALID_PREVIOUS[new.value]:
        group.move_to(new)
        assert (group.previous_state, group.state) == (old, new)
    else:
        with pytest.raises(AssertionError, match=r"GroupState\."):
            group.move_to(new)


def test_a_state_knows_since_when() -> None:
    """The time of the last move is kept, for the record and for the retention of offsets."""
    rehearsal = Rehearsal()
    group = Group("g", rehearsal.groups.surroundings)
    rehearsal.clock.advance(1234)
    group.move_to(GroupState.PREPARING_REBALANCE)
    assert group.state_since_ms == 1_700_000_001_234


def test_nothing_follows_death() -> None:
    """A dead group stays dead."""
    assert NEXT_STATES[GroupState.DEAD] == frozenset()
