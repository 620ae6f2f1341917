"""When to make appended data durable, as a value."""

from __future__ import annotations

from typing import NamedTuple

NEVER = 2**63 - 1


class FlushPolicy(NamedTuple):
    """
    Flush once `messages` offsets were appended since the last flush, or `interval_ms` have passed.

    Both default to never: like the real brokers, the store then leaves the moment to the operating
    system and flushes when a segment is sealed and at a clean stop.
    """

    messages: int = NEVER
    interval_ms: int = NEVER

    def is_due_by_time(self, unflushed: int, waited_ms: float) -> bool:
        """Tell whether a log that waited so long with unflushed offsets must flush."""
        return unflushed > 0 and waited_ms >= self.interval_ms
