"""How far each delay level is delivered: ``config/delayOffset.json`` (signatures)."""

from __future__ import annotations


class DelayOffsetTable:
    """
    The next queue offset of SCHEDULE_TOPIC_XXXX by delay level; a :class:`JsonTable`.

    Level n is queue n - 1.
    """

    def get(self, level: int) -> int | None:
        """Return the next queue offset of a level, None if it never delivered."""
        raise NotImplementedError

    def put(self, level: int, queue_offset: int) -> None:
        """Say that all before is delivered."""
        raise NotImplementedError
