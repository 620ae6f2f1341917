"""When the tables under ``config/`` are written that change all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from logstore.host import Clock

#: consumer filters have no setting of their own (``ConsumerFilterManager``)
_FILTERS_INTERVAL_MS = 10_000
#: nothing is written right after a start
_FIRST_AFTER_MS = 10_000


class PersistedTable(Protocol):
    """A table that knows whether it has changed."""

    def persist_if_dirty(self) -> bool:
        """Write it if it has."""
        ...


class TableWrites:
    """
    Writes consumer offsets, consumer filters and delay offsets, each at its interval.

    ``flushConsumerOffsetInterval`` (5 s) and ``flushDelayOffsetInterval`` (10 s); the first time
    10 s after the start, as ``BrokerController`` does. Topics and groups are written when they
    change, by whoever changes them.
    """

    def __init__(
        self, clock: Clock, consumer_offsets_interval_ms: int, delay_offsets_interval_ms: int
    ) -> None:
        self._clock = clock
        self._intervals_ms = (
            consumer_offsets_interval_ms,
            _FILTERS_INTERVAL_MS,
            delay_offsets_interval_ms,
        )
        self._next_ms = [clock.monotonic_ms() + _FIRST_AFTER_MS] * 3

    def tick(
        self,
        consumer_offsets: PersistedTable,
        consumer_filters: PersistedTable,
        delay_offsets: PersistedTable,
    ) -> None:
        """Write the tables that are due and have changed."""
        now_ms = self._clock.monotonic_ms()
        for number, table in enumerate((consumer_offsets, consumer_filters, delay_offsets)):
            if now_ms >= self._next_ms[number]:
                self._next_ms[number] = now_ms + self._intervals_ms[number]
                table.persist_if_dirty()
