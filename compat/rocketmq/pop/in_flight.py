"""
How many messages of each queue a group has popped and not finished (PopInflightMessageCounter).

Where ``enablePopMessageThreshold`` is set nothing more is popped of a queue with too many of them
(``popInflightMessageThreshold``). They are counted in any case, since the start of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

Queue = tuple[str, str, int]


class InFlight:
    """The counts, by topic, group and queue; a topic that comes again is one of its own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counts: dict[Queue, int] = {}

    def is_full(self, topic: str, group: str, queue_id: int) -> bool:
        """Tell whether nothing more may be popped of a queue now."""
        settings = self._broker.settings
        if not settings.limits_in_flight:
            return False
        return self._counts.get((topic, group, queue_id), 0) > settings.in_flight_max

    def popped(self, topic: str, group: str, queue_id: int, count: int) -> None:
        """Count messages that were popped."""
        queue = topic, group, queue_id
        self._counts[queue] = self._counts.get(queue, 0) + count

    def finished(
        self, topic: str, group: str, queue_id: int, pop_time_ms: int, count: int = 1
    ) -> None:
        """Count messages no more: acknowledged, or put again; an earlier broker's never were."""
        queue = topic, group, queue_id
        known = self._counts.get(queue)
        if known is None or pop_time_ms < self._broker.started_ms:
            return
        if known > count:
            self._counts[queue] = known - count
        else:
            del self._counts[queue]

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Begin anew with a queue: its messages come again, or others do."""
        self._counts.pop((topic, group, queue_id), None)

    def forget_topic(self, topic: str) -> None:
        """Begin anew with a topic, which is deleted."""
        for queue in [queue for queue in self._counts if queue[0] == topic]:
            del self._counts[queue]

    def forget_group(self, group: str) -> None:
        """Begin anew with a group, which is deleted."""
        for queue in [queue for queue in self._counts if queue[1] == group]:
            del self._counts[queue]
