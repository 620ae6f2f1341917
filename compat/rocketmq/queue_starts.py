"""Where queues start, as a real broker tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.segments.rocketmq.store import RocketMQStore


def start_of_queue(store: RocketMQStore, topic: str, queue_id: int) -> int:
    """Return the first queue offset: -1 in a queue of batches before its first one."""
    if not store.max_queue_offset(topic, queue_id) and store.tables.is_batch_topic(topic):
        return -1
    return store.min_queue_offset(topic, queue_id)
