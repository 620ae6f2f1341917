"""How far groups are behind in lite topics (LiteConsumerLagCalculator)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_names import is_lite, lite_topic_of
from logstore.segments.rocketmq.tables.consumer_offsets import SEPARATOR

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.lite.lite_queues import LiteQueues

_NEVER = -1


class LiteLags:
    """Counts what is not consumed, and knows since when where pops found more than they took."""

    def __init__(self, broker: Broker, queues: LiteQueues) -> None:
        self._broker = broker
        self._queues = queues
        #: (group, parent) -> light queue -> when the first message was stored that is left
        self._since_ms: dict[tuple[str, str], dict[str, int]] = {}

    def popped(self, group: str, parent: str, queue: str, following: int, *, is_full: bool) -> None:
        """Take note of a pop, and whether it took as many as it might."""
        stored_ms = self._queues.stored_ms(queue, following) if is_full else _NEVER
        known = self._since_ms.setdefault((group, parent), {})
        known.pop(queue, None)
        if stored_ms <= 0:
            return
        known[queue] = stored_ms
        if len(known) > self._broker.settings.lite_lags_max:
            del known[max(known, key=known.__getitem__)]

    def _committed(self, group: str) -> Iterator[tuple[str, int]]:
        for key, queues in self._broker.store.consumer_offsets.offsets.items():
            queue, _, name = key.partition(SEPARATOR)
            if name == group and is_lite(queue) and 0 in queues:
                yield queue, queues[0]

    def _lag(self, queue: str, committed: int) -> int:
        return max(0, self._queues.end(queue) - committed) if committed >= 0 else 0

    def by_count(self, group: str, count_max: int) -> tuple[list[dict[str, Any]], int]:
        """Return the lite topics in which a group has most to do, and how much it has in all."""
        lags = [
            (self._lag(queue, offset), queue, offset) for queue, offset in self._committed(group)
        ]
        found = [entry for entry in lags if entry[0] > 0]
        most = heapq.nlargest(count_max, found, key=lambda entry: entry[0])
        entries = [
            _entry(queue, lag, self._queues.stored_ms(queue, offset)) for lag, queue, offset in most
        ]
        return entries, sum(entry[0] for entry in found)

    def by_time(self, group: str, parent: str, count_max: int) -> tuple[list[dict[str, Any]], int]:
        """Return the lite topics that wait longest, as far as pops told, and since when."""
        known = self._since_ms.get((group, parent), {})
        offsets = self._broker.store.consumer_offsets
        entries = [
            _entry(queue, self._lag(queue, offsets.query(group, queue, 0)), stored_ms)
            for queue, stored_ms in heapq.nsmallest(
                count_max, known.items(), key=lambda item: item[1]
            )
        ]
        return entries, min(known.values(), default=_NEVER)


def _entry(queue: str, lag: int, stored_ms: int) -> dict[str, Any]:
    found: dict[str, Any] = {"lagCount": lag, "earliestUnconsumedTimestamp": stored_ms}
    lite_topic = lite_topic_of(queue)
    return found if lite_topic is None else {**found, "liteTopic": lite_topic}
