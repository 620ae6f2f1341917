"""Changed batches are laid over known ones as Kafka's PersisterStateBatchCombiner does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch
from logstore.compat.kafka.share_state.state_batches import combined

AVAILABLE, ACKNOWLEDGED, ARCHIVED = (
    DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED,
)  # fmt: skip
Short = tuple[int, int, DeliveryState, int]
OFFSET_MAX = 24


def batches(*short: Short) -> list[StateBatch]:
    """Return batches of (first, last, state, count)."""
    return [StateBatch(*one) for one in short]


@pytest.mark.parametrize(
    ("known", "changed", "start", "left"),
    [
        # nothing to merge
        ([], [], -1, []),
        ([], [(0, 9, AVAILABLE, 1)], -1, [(0, 9, AVAILABLE, 1)]),
        ([(0, 9, AVAILABLE, 1)], [], -1, [(0, 9, AVAILABLE, 1)]),
        # a batch that ends before it begins says nothing
        ([(0, 9, AVAILABLE, 1)], [(5, 3, ARCHIVED, 2)], -1, [(0, 9, AVAILABLE, 1)]),
        # what lies before the start goes, also of a single batch
        ([(0, 9, AVAILABLE, 1)], [], 10, []),
        ([(0, 9, AVAILABLE, 1)], [], 4, [(4, 9, AVAILABLE, 1)]),
        ([(0, 3, AVAILABLE, 1)], [(4, 9, ARCHIVED, 1)], 4, [(4, 9, ARCHIVED, 1)]),
        # alike: overlapping, neighbours, apart
        ([(0, 5, AVAILABLE, 1)], [(3, 9, AVAILABLE, 1)], -1, [(0, 9, AVAILABLE, 1)]),
        ([(0, 5, AVAILABLE, 1)], [(6, 9, AVAILABLE, 1)], -1, [(0, 9, AVAILABLE, 1)]),
        (
            [(0, 5, AVAILABLE, 1)], [(7, 9, AVAILABLE, 1)], -1,
            [(0, 5, AVAILABLE, 1), (7, 9, AVAILABLE, 1)],
        ),
        # the higher count wins, then the higher state
        ([(0, 9, AVAILABLE, 1)], [(0, 9, AVAILABLE, 2)], -1, [(0, 9, AVAILABLE, 2)]),
        ([(0, 9, ARCHIVED, 1)], [(0, 9, AVAILABLE, 2)], -1, [(0, 9, AVAILABLE, 2)]),
        ([(0, 9, ACKNOWLEDGED, 2)], [(0, 9, ARCHIVED, 2)], -1, [(0, 9, ARCHIVED, 2)]),
        ([(0, 9, AVAILABLE, 3)], [(0, 9, ARCHIVED, 2)], -1, [(0, 9, AVAILABLE, 3)]),
        # in the middle, at the front, at the end, over the end
        (
            [(0, 9, AVAILABLE, 1)], [(4, 5, ARCHIVED, 2)], -1,
            [(0, 3, AVAILABLE, 1), (4, 5, ARCHIVED, 2), (6, 9, AVAILABLE, 1)],
        ),
        ([(0, 9, AVAILABLE, 2)], [(4, 5, ARCHIVED, 1)], -1, [(0, 9, AVAILABLE, 2)]),
        (
            [(0, 9, AVAILABLE, 1)], [(7, 9, ARCHIVED, 1)], -1,
            [(0, 6, AVAILABLE, 1), (7, 9, ARCHIVED, 1)],
        ),
        (
            [(0, 9, AVAILABLE, 1)], [(7, 12, ARCHIVED, 1)], -1,
            [(0, 6, AVAILABLE, 1), (7, 12, ARCHIVED, 1)],
        ),
        (
            [(0, 9, ARCHIVED, 2)], [(7, 12, AVAILABLE, 1)], -1,
            [(0, 9, ARCHIVED, 2), (10, 12, AVAILABLE, 1)],
        ),
        # the first is done before the third is laid over the second, and stays apart from it
        (
            [(0, 9, AVAILABLE, 2), (10, 19, ARCHIVED, 1)], [(10, 25, AVAILABLE, 2)], -1,
            [(0, 9, AVAILABLE, 2), (10, 25, AVAILABLE, 2)],
        ),
    ],
)  # fmt: skip
def test_what_is_left(
    known: list[Short], changed: list[Short], start: int, left: list[Short]
) -> None:
    """Each offset ends in the batch that counts, and nothing before the start is left."""
    assert list(combined(batches(*known), batches(*changed), start)) == batches(*left)


def batch_of_length(first: int, length: int, state: DeliveryState, count: int) -> StateBatch:
    """Return a batch."""
    return StateBatch(first, first + length, state, count)


SOME = st.lists(
    st.builds(
        batch_of_length,
        st.integers(0, OFFSET_MAX - 6), st.integers(0, 6),
        st.sampled_from(list(DeliveryState)), st.integers(1, 3),
    ),
    max_size=8,
)  # fmt: skip


@given(known=SOME, changed=SOME, start=st.integers(-1, OFFSET_MAX))
def test_every_offset_has_what_ranks_highest(
    known: list[StateBatch], changed: list[StateBatch], start: int
) -> None:
    """No two batches overlap, they are in order, and each offset has the highest of its batches."""
    left = combined(known, changed, start)
    assert [one.first_offset for one in left] == sorted(one.first_offset for one in left)
    for offset in range(OFFSET_MAX + 1):
        ranks = [
            (one.delivery_count, one.delivery_state)
            for one in (*known, *changed)
            if one.first_offset <= offset <= one.last_offset and offset >= start
        ]
        found = [
            (one.delivery_count, one.delivery_state)
            for one in left
            if one.first_offset <= offset <= one.last_offset
        ]
        assert found == ([max(ranks)] if ranks else [])
