"""Which queue of its retry topic a popped message comes back in (PopReviveService)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.pop.retry_topics import normal_topic

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker


def retry_queue(broker: Broker, retry_topic: str, group: str, queue_id: int) -> int:
    """
    Return the queue for a message that was popped from `queue_id`, and see that it is there.

    There is one for all of them. With `useSeparateRetryQueue` each queue has one of its own, so
    that what comes back keeps its priority, and the retry topic grows with the other one.

    Raises:
        OSError: the topic is not there yet, or too small, and the disk refuses a change.

    """
    is_separate = broker.settings.has_separate_retry_queues
    known = broker.topics.get(retry_topic)
    queue_count = 1
    if is_separate:
        normal = broker.topics.get(normal_topic(retry_topic, group))
        queue_count = 1 if normal is None else normal.write_queue_count
    if known is None or (is_separate and known.write_queue_count != queue_count):
        _have_queues(broker, retry_topic, group, queue_count)
    return queue_id if is_separate and queue_id < queue_count else 0


def _have_queues(broker: Broker, retry_topic: str, group: str, queue_count: int) -> None:
    """Give a retry topic so many queues, each of them consumed from its beginning."""
    config = broker.topics.ensure(retry_topic, queue_count)
    if config.write_queue_count != queue_count:
        grown = attrs.evolve(config, read_queue_count=queue_count, write_queue_count=queue_count)
        broker.topics.put(grown)
    offsets = broker.store.consumer_offsets
    for queue_id in range(queue_count):
        if offsets.query(group, retry_topic, queue_id) < 0:
            offsets.commit(group, retry_topic, queue_id, 0)
