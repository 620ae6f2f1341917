"""The light queues of lite topics: how far they go, and which there are (LiteLifecycleManager)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import belongs_to, is_lite
from logstore.compat.rocketmq.lite.lite_rules import is_parent
from logstore.segments.rocketmq.queues.queue_offsets import is_lmq

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.lite.shards import Shards


class LiteQueues:
    """What the store of one broker knows of light queues."""

    def __init__(self, broker: Broker, shards: Shards) -> None:
        self._broker = broker
        self._shards = shards

    def end(self, queue: str) -> int:
        """Return the queue offset that the next message of a light queue gets."""
        return self._broker.store.max_queue_offset(queue, 0)

    def exists(self, queue: str) -> bool:
        """Tell whether there is any message, or was."""
        return self.end(queue) > 0

    def takes_subscriptions(self, parent: str, queue: str) -> bool:
        """Tell whether messages of a lite topic come to this broker, or came."""
        return self._shards.is_ours(parent, queue) or self.exists(queue)

    def __iter__(self) -> Iterator[str]:
        """Yield all light queues of lite topics."""
        for topic, queue_id in list(self._broker.store.consume_queues.by_key):
            if queue_id == 0 and is_lite(topic):
                yield topic

    def of_parent(self, parent: str) -> list[str]:
        """Return the light queues of a parent's lite topics."""
        return [queue for queue in self if belongs_to(queue, parent)]

    def count_of_parent(self, parent: str) -> int:
        """Return how many lite topics a parent has."""
        return len(self.of_parent(parent)) if is_parent(self._broker.topics.get(parent)) else 0

    def count_of_store(self) -> int:
        """Return how many light queues there are, of lite topics or not."""
        return sum(is_lmq(topic) for topic, _ in self._broker.store.consume_queues.by_key)

    def stored_ms(self, queue: str, queue_offset: int) -> int:
        """Return when a message was stored, -1 where there is none."""
        return self._broker.store.store_timestamp_at(queue, 0, queue_offset)
