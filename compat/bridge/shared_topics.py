"""Which topics both protocols see: those whose names both allow, and that are nobody's own."""

from __future__ import annotations

from logstore.compat.kafka.topics.names import INTERNAL_TOPICS, METADATA_TOPIC, flaw_of
from logstore.compat.rocketmq.topics.broker_topics import BrokerTopics
from logstore.compat.rocketmq.topics.names import flaw_of_topic
from logstore.segments.rocketmq.tables.topics import TopicConfig

_KAFKA_OWN = INTERNAL_TOPICS | {METADATA_TOPIC}
#: topics that RocketMQ's clients themselves need, or whose queues are no rows of messages
_BATCH_QUEUES = "BatchCQ"


class SharedTopics:
    """Decides by the names that a RocketMQ broker keeps for itself, which depend on its own."""

    def __init__(self, topics: BrokerTopics) -> None:
        self._topics = topics

    def is_shared(self, name: str) -> bool:
        """Tell whether a topic of that name is one of both sides."""
        return self.flaw_of(name) is None

    def flaw_of(self, name: str) -> str | None:
        """Return why a topic of that name cannot be one of both sides; None if it can."""
        if name in _KAFKA_OWN:
            return f"{name} is Kafka's own"
        if self._topics.is_system(name):
            return f"{name} is RocketMQ's own"
        flaw = flaw_of(name) or flaw_of_topic(name)
        if flaw is not None:
            return flaw
        config = self._topics.get(name)
        if config is not None and config.attributes.get("queue.type") == _BATCH_QUEUES:
            return f"the queues of {name} hold batches (queue.type)"
        return None

    def shared(self) -> list[TopicConfig]:
        """Return the topics that RocketMQ's side has, and both see."""
        return [
            config
            for name, config in list(self._topics.table.topics.items())
            if self.is_shared(name)
        ]
