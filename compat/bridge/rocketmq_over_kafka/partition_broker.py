"""
A RocketMQ broker over the partitions of a Kafka broker, put together.

Topics are Kafka's: what is created, grown or deleted on either side is so on the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.bridge.rocketmq_over_kafka.offset_forwarding import OffsetForwarding
from logstore.compat.bridge.rocketmq_over_kafka.partition_commit import PartitionCommit
from logstore.compat.bridge.rocketmq_over_kafka.partition_pulls_held import PartitionPullsHeld
from logstore.compat.bridge.rocketmq_over_kafka.partition_store import PartitionStore
from logstore.compat.bridge.rocketmq_over_kafka.shown_broker import ShownBroker
from logstore.compat.bridge.shared_topics import SharedTopics
from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.topics.topic_changes import delete_topic
from logstore.host import Host
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.config_keys import INT_MAX
from logstore.segments.kafka.topic import Topic
from logstore.segments.rocketmq.settings.broker_config import BrokerSettings
from logstore.segments.rocketmq.store import StoreOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig

#: so much of a record batch is made of what is sent, at most: small messages are half headers
_BATCH_BYTES_A_BYTE = 2


class PartitionBroker(Broker):
    """Serves the partitions of `kafka` to any number of RocketMQ connections."""

    def __init__(
        self, host: Host, store: PartitionStore, config: BrokerSettings, kafka: ShownBroker
    ) -> None:
        self._kafka = kafka
        self._partitions = store
        super().__init__(host, store, config)
        self.shared = SharedTopics(self.topics)
        self.held_pulls = PartitionPullsHeld(self.timers, store, self.requests_served)
        self.group_commit = PartitionCommit(self, store, self.outbox)
        store.host_address = self.store_host
        self.forwarding = OffsetForwarding(kafka, store.consumer_offsets, self.shared)
        self._take_over_topics()

    @classmethod
    def over(
        cls, host: Host, directory: str, settings: Mapping[str, str], kafka: ShownBroker
    ) -> PartitionBroker:
        """
        Return a broker over `kafka`, which keeps what it needs beside the data in `directory`.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be used; the text says why and what to do.

        """
        given = {**settings, "storePathRootDir": directory}
        config = BrokerSettings(given)
        store = PartitionStore(host, directory, StoreOptions(settings=given), kafka)
        try:
            return cls(host, store, config, kafka)
        except BaseException:
            store.abandon()
            raise

    def _advertise(self, host: str, port: int) -> None:
        super()._advertise(host, port)
        self._partitions.host_address = self.store_host

    # topics

    def _take_over_topics(self) -> None:
        """Have just the topics that Kafka has, beside one's own."""
        for config in self.shared.shared():
            if config.topic_name not in self._kafka.topics:
                delete_topic(self, config.topic_name)
        for topic in list(self._kafka.topics.values()):
            self._adopt(topic)
        self._kafka.on_topic = self._adopt
        self._kafka.on_topic_gone = self._forget

    def follow_topics(self) -> None:
        """Take one's own new topics to Kafka; to be called once the registrar runs."""
        topics = self.topics
        told_before = topics.on_change

        def changed(config: TopicConfig) -> None:
            self._offer(config)
            if told_before is not None:
                told_before(config)

        topics.on_change = changed
        topics.on_remove = self._take_away
        self.forwarding.start()

    def _adopt(self, topic: Topic) -> None:
        """Know a topic of Kafka's, with as many queues as it has partitions."""
        name, count = topic.name, topic.partition_count
        if not self.shared.is_shared(name):
            return
        self._partitions.windows[name] = topic.partitions
        if self._partitions.places.has_rests(topic.topic_id):
            self._partitions.leave_out_rests(name)
        known = self.topics.get(name)
        if known is None:
            self.topics.put(TopicConfig(name, count, count))
        elif max(known.read_queue_count, known.write_queue_count) != count:
            self.topics.put(attrs.evolve(known, read_queue_count=count, write_queue_count=count))

    def _forget(self, topic: Topic) -> None:
        """Forget a topic that Kafka is about to delete."""
        self._partitions.windows.pop(topic.name, None)
        for partition in topic.partitions.values():
            self._partitions.reads.forget(partition)
        if self.topics.get(topic.name) is not None and self.shared.is_shared(topic.name):
            delete_topic(self, topic.name)

    def _offer(self, config: TopicConfig) -> None:
        """Have a topic of one's own at Kafka, too."""
        name = config.topic_name
        if not self.shared.is_shared(name):
            return
        count = max(config.read_queue_count, config.write_queue_count)
        topic = self._kafka.topics.get(name)
        if topic is None and count:
            self._kafka.create_topic(name, count, self._room_for_messages())
        elif topic is not None and topic.partition_count < count:
            self._kafka.add_partitions(topic, count)

    def _room_for_messages(self) -> dict[str, str]:
        """Return the settings of a new topic: the largest send fits, above Kafka's own limit."""
        message_bytes = self._partitions.putting.rules.message_size_bytes_max
        bytes_max = min(message_bytes * _BATCH_BYTES_A_BYTE, INT_MAX)
        allowed = parse_topic_configs(self._kafka.store.log_defaults).max_message_bytes
        return {} if allowed >= bytes_max else {"max.message.bytes": str(bytes_max)}

    def _take_away(self, name: str) -> None:
        """Delete at Kafka what was deleted here."""
        topic = self._kafka.topics.get(name)
        if topic is not None and name in self._partitions.windows:
            self._kafka.delete_topic(topic)

    # the end

    def close(self) -> None:
        """Stop cleanly."""
        self.forwarding.forward()
        super().close()
