"""
Which queue offset the next message of each queue gets (Java's ``topicQueueTable``).

Kept in memory only: a start takes it from the consume queues. Java has one table for plain
queues, one for batch queues and one for light message queues; the keys never meet, so one will do.
"""

from __future__ import annotations

from collections.abc import Mapping

#: topic and queue id
QueueKey = tuple[str, int]

#: topics of light message queues begin so; each has the one queue 0
LMQ_PREFIX = "%LMQ%"


def is_lmq(topic: str) -> bool:
    """Tell whether a topic is a light message queue."""
    return topic.startswith(LMQ_PREFIX)


class QueueOffsets(dict[QueueKey, int]):
    """Next queue offset by (topic, queue id); a queue that is not in it starts at 0."""

    __slots__ = ("lmq_count",)

    def __init__(self, offsets: Mapping[QueueKey, int] | None = None) -> None:
        super().__init__(offsets or {})
        self.lmq_count = sum(is_lmq(topic) for topic, _ in self)

    def next_of(self, topic: str, queue_id: int) -> int:
        """Return the queue offset that the next message of a queue gets."""
        return self.get((topic, queue_id), 0)

    def advance(self, topic: str, queue_id: int, queue_offset: int) -> None:
        """Say that the next message of a queue gets `queue_offset`."""
        key = topic, queue_id
        if key not in self and is_lmq(topic):
            self.lmq_count += 1
        self[key] = queue_offset

    def forget(self, topic: str, queue_id: int) -> None:
        """Drop a queue that was deleted: the next one of its name starts at 0."""
        if self.pop((topic, queue_id), None) is not None and is_lmq(topic):
            self.lmq_count -= 1
