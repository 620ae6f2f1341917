"""
The least and the most loaded of some members, while partitions move between them.

Two runs of members sorted by load: the least loaded fill up level by level from the left, the most
loaded empty level by level from the right. Members with nothing to give are put aside at the right.

Source: ``UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class MemberLevels:
    """
    Walks members by how many partitions they have.

    `sizes` are those of all members and change as partitions move; `numbers` are the members
    concerned, at least one.
    """

    def __init__(self, sizes: Sequence[int], numbers: Sequence[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(numbers, key=lambda number: (sizes[number], number))
        first, last = sizes[self._sorted[0]], sizes[self._sorted[-1]]
        #: how far apart the least and the most loaded are at the start
        self.difference = last - first
        self._least_end, self._least_size, self._next_least = 0, first - 1, 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_size, self._next_most = last + 1, len(self._sorted) - 1

    @property
    def is_balanced(self) -> bool:
        """Tell whether moving one more partition would not help."""
        return self._most_size - self._least_size <= 1

    def next_least(self) -> int:
        """Return who gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_size += 1
            while self._least_end < len(self._sorted) and self._is_at(
                self._least_end, self._least_size
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most(self, owned: Mapping[int, Sequence[int]]) -> int | None:
        """Return who gives a partition away, one that owns some; None if there is nobody."""
        while True:
            number = self._candidate()
            if number is None or owned.get(number):
                return number
            self._put_aside()

    def _candidate(self) -> int | None:
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of this level were put aside: go on with whatever level comes next.
                self._most_size = self._sizes[self._sorted[self._most_start - 1]]
            else:
                self._most_size -= 1
            while self._most_start > 0 and self._is_at(self._most_start - 1, self._most_size):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._sorted[self._next_most + 1]

    def _put_aside(self) -> None:
        """Take the last candidate out: it has nothing to give."""
        place, last = self._next_most + 1, self._most_end - 1
        self._sorted[place], self._sorted[last] = self._sorted[last], self._sorted[place]
        self._most_end -= 1

    def _is_at(self, position: int, size: int) -> bool:
        return self._sizes[self._sorted[position]] == size
