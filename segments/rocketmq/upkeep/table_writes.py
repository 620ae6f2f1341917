"""When the tables under ``config/`` are written that change all the time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import Clock
    from logstore.segments.rocketmq.tables.json_table import JsonTable

#: nothing is written right after a start
_FIRST_AFTER_MS = 10_000


class TableWrites:
    """
    Tells which tables are to be written, each at its interval if it has changed.

    ``flushConsumerOffsetInterval`` (5 s), ``flushDelayOffsetInterval`` (10 s); the first time 10 s
    after the start, as ``BrokerController`` does. Topics and groups are written when they change,
    by whoever changes them.
    """

    def __init__(self, clock: Clock, intervals_ms: Iterable[tuple[JsonTable, int]]) -> None:
        self._clock = clock
        self._intervals_ms = list(intervals_ms)
        self._next_ms = [clock.monotonic_ms() + _FIRST_AFTER_MS] * len(self._intervals_ms)

    def take_due(self) -> list[JsonTable]:
        """Return the tables that are due and have changed; their intervals start anew."""
        now_ms = self._clock.monotonic_ms()
        found: list[JsonTable] = []
        for number, (table, interval_ms) in enumerate(self._intervals_ms):
            if now_ms >= self._next_ms[number]:
                self._next_ms[number] = now_ms + interval_ms
                if table.is_dirty:
                    found.append(table)
        return found
