"""
Lays changed batches over those that are known: every offset ends in one batch at most.

Where two overlap, the higher number of deliveries wins, then the higher state; neighbours that are
alike become one. ``(A)`` below was delivered once, ``(B)`` twice::

    known     (A  0..9)                         (A 0..3)(B 4..5)(A 6..9)
    changed        (B 4..5)              gives

Whoever reads the records of a real broker must come to the very batches that it wrote into its next
snapshot. So the order of the steps is Kafka's: a batch that touches nothing behind it is done, and
is not looked at again, even if what comes behind it turns out to be alike later.

Source: ``PersisterStateBatchCombiner``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch

#: in the order in which they are merged: offsets, number of deliveries, state
_Ranked = tuple[int, int, int, DeliveryState]

_ANYWHERE = -1


def combined(
    known: Iterable[StateBatch], changed: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return what holds from `start_offset` on (-1: everywhere) once `changed` lies on `known`."""
    kept = [
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        for batch in (*known, *changed)
        if start_offset == _ANYWHERE or batch.last_offset >= start_offset
        if batch.last_offset >= batch.first_offset  # or it says nothing
    ]
    if len(kept) < 2:
        return tuple(kept)
    return tuple(_batch(one) for one in _merged([_ranked(batch) for batch in kept]))


def _ranked(batch: StateBatch) -> _Ranked:
    return batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state


def _batch(ranked: _Ranked) -> StateBatch:
    first, last, count, state = ranked
    return StateBatch(first, last, state, count)


def _merged(pending: list[_Ranked]) -> list[_Ranked]:
    heapq.heapify(pending)
    done: list[_Ranked] = []
    while pending:
        before = heapq.heappop(pending)
        if pending and _meet(before, pending[0]):
            for piece in _overlaid(before, heapq.heappop(pending)):
                heapq.heappush(pending, piece)
        else:
            done.append(before)
    return done


def _meet(before: _Ranked, after: _Ranked) -> bool:
    """Tell whether two batches overlap, or are neighbours and alike."""
    if after[0] <= before[1]:
        return True
    return after[0] == before[1] + 1 and after[2:] == before[2:]


def _overlaid(before: _Ranked, after: _Ranked) -> list[_Ranked]:
    """Return what two batches become, of which `after` does not start earlier."""
    first, last = before[0], before[1]
    if before[2:] == after[2:]:
        return [(first, max(last, after[1]), before[2], before[3])]
    if after[2:] < before[2:]:
        rest = [(last + 1, after[1], after[2], after[3])] if after[1] > last else []
        return [before, *rest]
    head = [(first, after[0] - 1, before[2], before[3])] if first < after[0] else []
    tail = [(after[1] + 1, last, before[2], before[3])] if after[1] < last else []
    return [*head, after, *tail]
