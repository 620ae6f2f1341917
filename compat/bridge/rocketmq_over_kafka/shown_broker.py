"""A Kafka broker on its own layout, whose topics, groups and data a RocketMQ broker shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logstore.compat.bridge.rocketmq_over_kafka.shown_partition import ShownPartition
from logstore.compat.bridge.shared_offsets import SharedCoordinator, SharedOffsets
from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.configs.settings import BrokerSettings
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.groups.topic import GroupsTopic
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.host import Host
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.segments.kafka.topic import Topic


class ShownStore(KafkaStore):
    """A Kafka store that may hold RocketMQ's messages."""

    def make_partition(
        self,
        host: Host,
        files: SegmentFiles,
        topic: str,
        index: int,
        *,
        recovery_point: int | None,
        log_start_offset: int,
    ) -> KafkaPartition:
        """Return a partition whose reads leave out what is RocketMQ's alone."""
        kind = KafkaPartition if topic in INTERNAL_TOPICS else ShownPartition
        return kind(
            host,
            files,
            topic,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )


class ShownBroker(Broker):
    """
    Serves a Kafka store, and tells of every change of its topics.

    `on_topic` is told of topics that are new or have grown, `on_topic_gone` of those deleted.
    """

    def __init__(
        self, host: Host, store: KafkaStore, config: BrokerSettings, offsets: SharedOffsets
    ) -> None:
        self._offsets = offsets
        self.on_topic: Callable[[Topic], None] = _ignore
        self.on_topic_gone: Callable[[Topic], None] = _ignore
        super().__init__(host, store, config)

    @classmethod
    def open_shown(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        offsets: SharedOffsets,
        *,
        is_parallel: bool = False,
    ) -> ShownBroker:
        """
        Open the store in `directory` as :meth:`Broker.open` does.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        given = BrokerConfig(settings)
        config = BrokerSettings.of(given)
        options = StoreOptions(
            node_id=config.node_id,
            log_defaults=given.topic_defaults(),
            recovery_thread_count=config.num_recovery_threads_per_data_dir if is_parallel else 1,
        )
        store = ShownStore(host, directory, options)
        try:
            return cls(host, store, config, offsets)
        except BaseException:
            store.abandon()
            raise

    def create_topic(
        self, name: str, partition_count: int, settings: dict[str, str] | None = None
    ) -> Topic:
        """Create a topic, and tell of it."""
        topic = super().create_topic(name, partition_count, settings)
        self.on_topic(topic)
        return topic

    def add_partitions(self, topic: Topic, partition_count: int) -> None:
        """Grow a topic, and tell of it."""
        super().add_partitions(topic, partition_count)
        self.on_topic(topic)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic, and tell of it."""
        self.on_topic_gone(topic)
        super().delete_topic(topic)

    def _open_groups(self) -> GroupCoordinator:
        return SharedCoordinator.of_broker(self, GroupsTopic(self), self._offsets)


def _ignore(topic: Topic) -> None:
    """Nobody wants to know."""
    del topic
