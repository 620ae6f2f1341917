"""
Java's ``PriorityQueue``, which hands out equals in an order of its own.

Whoever wants to choose as Kafka does must break ties as it does. :mod:`heapq` keeps its heap in
another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class JavaQueue(Generic[ItemT]):
    """A queue that gives the smallest first; the weight of what is in it must not change."""

    def __init__(self, weight_of: Callable[[ItemT], float], items: Iterable[ItemT] = ()) -> None:
        self._weight_of = weight_of
        self._heap: list[ItemT] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        """Return how many are in it."""
        return len(self._heap)

    def add(self, item: ItemT) -> None:
        """Put one in."""
        heap, weight = self._heap, self._weight_of(item)
        heap.append(item)
        place = len(heap) - 1
        while place > 0:
            above = (place - 1) >> 1
            if weight >= self._weight_of(heap[above]):
                break
            heap[place] = heap[above]
            place = above
        heap[place] = item

    def poll(self) -> ItemT | None:
        """Take out the smallest, None if there is none."""
        heap = self._heap
        if not heap:
            return None
        smallest, last = heap[0], heap.pop()
        if heap:
            self._sink(last)
        return smallest

    def _sink(self, item: ItemT) -> None:
        """Let `item` take the place of the one on top, and go down to where it belongs."""
        heap, weight, size = self._heap, self._weight_of(item), len(self._heap)
        place = 0
        while place < size >> 1:
            below = 2 * place + 1
            right = below + 1
            if right < size and self._weight_of(heap[below]) > self._weight_of(heap[right]):
                below = right
            if weight <= self._weight_of(heap[below]):
                break
            heap[place] = heap[below]
            place = below
        heap[place] = item
