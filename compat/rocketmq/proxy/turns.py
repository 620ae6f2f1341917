"""Whose turn it is, by topic: queues are sent to and brokers received from one after the other."""

from __future__ import annotations

#: of how many topics the turn is remembered
_TOPIC_COUNT_MAX = 4096


class Turns:
    """Counts around."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def take(self, topic: str, count: int) -> int:
        """Return which of `count` it is, so that the next one will be it the next time."""
        chosen = self._next.pop(topic, 0) % count
        if len(self._next) >= _TOPIC_COUNT_MAX:
            del self._next[next(iter(self._next))]  # that of whose turn it was the longest ago
        self._next[topic] = chosen + 1
        return chosen
