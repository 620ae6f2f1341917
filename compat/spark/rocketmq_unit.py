"""A piece of one commit log file that a task reads on its own."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(eq=False)
class QueueBounds:
    """Which messages are wanted: of each (topic, queue id) those in ``[start, end)``."""

    by_queue: Mapping[tuple[str, int], tuple[int, int]]


@attrs.frozen
class RocketMQUnit:
    """
    The records that start in ``[position, end_position)`` of a commit log file.

    `base_physical_offset` is where the file starts. `position` need not be where a record does:
    whoever reads the unit before tells of damage that hides where that is.
    """

    path: str
    base_physical_offset: int
    position: int
    end_position: int
    bounds: QueueBounds = attrs.field(factory=lambda: QueueBounds({}))
    #: whether the log ends with it
    is_last: bool = False

    @property
    def size_bytes(self) -> int:
        """How much of the file it covers."""
        return self.end_position - self.position

    def bounded(self, bounds: QueueBounds) -> RocketMQUnit:
        """Return the unit with these bounds."""
        return attrs.evolve(self, bounds=bounds)
