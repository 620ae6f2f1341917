"""SQL filters of consumers: ``config/consumerFilter.json`` (signatures)."""

from __future__ import annotations

import attrs


@attrs.frozen
class ConsumerFilter:
    """The filter of one group on one topic (``ConsumerFilterData``)."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    born_time_ms: int
    client_version: int
    dead_time_ms: int = 0
    bloom_bit_count: int = 0
    bloom_positions: tuple[int, ...] = ()

    @property
    def is_dead(self) -> bool:
        """Whether no consumer uses it any more."""
        return self.dead_time_ms >= self.born_time_ms


class ConsumerFilterTable:
    """Filters by topic and group (``ConsumerFilterManager``); a :class:`JsonTable`."""

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """Return the filter of a group on a topic."""
        raise NotImplementedError

    def of_topic(self, topic: str) -> list[ConsumerFilter]:
        """Return all filters on a topic."""
        raise NotImplementedError

    def register(self, new: ConsumerFilter) -> bool:
        """Take a subscription's filter unless a newer one stands; tell whether it counts now."""
        raise NotImplementedError

    def unregister(self, group: str) -> None:
        """Mark a group's filters as dead."""
        raise NotImplementedError
