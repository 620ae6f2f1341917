"""How far a group is behind, queue by queue (ConsumeStats)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.broker_stats import GROUP_GET_NUMS
from logstore.compat.rocketmq.wire.bodies import object_body, queue_table
from logstore.compat.rocketmq.wire.message_queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.rocketmq.broker import Broker


def topics_of_group(broker: Broker, group: str, topic: str | None = None) -> list[str]:
    """Return the topics that count for a group: what it committed in and still subscribes to."""
    topics = [topic] if topic else sorted(broker.store.consumer_offsets.topics_of(group))
    connected = broker.consumers.group(group)
    if connected is None or not connected.subscriptions:
        return topics
    return [name for name in topics if broker.consumers.subscription(group, name) is not None]


def as_long(number: int) -> int:
    """Return a sum as Java has it, which goes round: offsets may be any number of 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


class ConsumeStats:
    """
    The numbers of one group in some topics.

    Who is told of all groups (`is_of_all`) is told of the queues to write to, and not how far they
    have pulled, in Java, too.
    """

    def __init__(
        self, broker: Broker, group: str, topics: Iterable[str], *, is_of_all: bool = False
    ) -> None:
        self._is_of_all = is_of_all
        self._broker = broker
        self._group = group
        self.rate = 0.0
        self.table: dict[MessageQueue, dict[str, int]] = {}
        for topic in topics:
            self._add(topic)

    @property
    def lag(self) -> int:
        """How many messages the group has not committed yet."""
        found = sum(row["brokerOffset"] - row["consumerOffset"] for row in self.table.values())
        return as_long(found)

    @property
    def in_flight(self) -> int:
        """How many messages it has pulled and not committed yet."""
        found = sum(row["pullOffset"] - row["consumerOffset"] for row in self.table.values())
        return as_long(found)

    def body(self) -> bytes:
        """Return them as administrators are shown them."""
        return object_body(consumeTps=self.rate, offsetTable=queue_table(self.table))

    def _add(self, topic: str) -> None:
        broker, group = self._broker, self._group
        config = broker.topics.get(topic)
        if config is None:
            return
        count = config.write_queue_count if self._is_of_all else config.read_queue_count
        for queue_id in range(count):
            queue = MessageQueue(topic, broker.settings.broker_name, queue_id)
            self.table[queue] = self._row(topic, queue_id)
        self.rate += broker.stats.rate(GROUP_GET_NUMS, f"{topic}@{group}")

    def _row(self, topic: str, queue_id: int) -> dict[str, int]:
        store = self._broker.store
        committed = store.consumer_offsets.query(self._group, topic, queue_id)
        if self._is_of_all or topic not in self._broker.static_topics.details:
            committed = max(committed, 0)  # of a static topic another broker may know more
        pulled = store.consumer_offsets.query_pull(self._group, topic, queue_id)
        stored_ms = store.store_timestamp_at(topic, queue_id, committed - 1) if committed > 0 else 0
        return {
            "brokerOffset": max(store.max_queue_offset(topic, queue_id), 0),
            "consumerOffset": committed,
            "lastTimestamp": max(stored_ms, 0),
            "pullOffset": 0 if self._is_of_all else max(committed, pulled),
        }
