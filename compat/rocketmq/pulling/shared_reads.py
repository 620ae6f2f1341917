"""What one of many pulls that are woken together has read, for those who ask for the same."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from logstore.segments.rocketmq.reading.get_message import GetMessageResult
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter
    from logstore.segments.rocketmq.store import RocketMQStore

#: topic, queue id, where to begin, how many at most, and where the queue ends
_Asked = tuple[str, int, int, int, int]


class SharedReads:
    """
    Reads of one store; many groups that wait at the end of a queue want the same message.

    Only pulls without a filter share what they read.
    """

    def __init__(self, store: RocketMQStore) -> None:
        self._store = store
        self._results: dict[_Asked, GetMessageResult] | None = None

    @contextmanager
    def sharing(self) -> Generator[None]:
        """Remember until the end of the block what was read."""
        self._results = {}
        try:
            yield
        finally:
            self._results = None

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        message_filter: MessageFilter | None,
    ) -> GetMessageResult | None:
        """Return what a pull gets; it is counted as one that has read by itself."""
        store, results = self._store, self._results
        if results is None or message_filter is not None:
            return store.get_message(
                group, topic, queue_id, queue_offset, count_max, message_filter=message_filter
            )
        end = store.max_queue_offset(topic, queue_id)
        asked = topic, queue_id, queue_offset, count_max, end
        found = results.get(asked)
        if found is not None:
            store.stats.count_get(found)
            return found
        result = store.get_message(group, topic, queue_id, queue_offset, count_max)
        if result is not None:
            results[asked] = result
        return result
