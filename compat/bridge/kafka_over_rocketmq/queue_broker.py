"""
A Kafka broker over the queues of a RocketMQ broker.

Topics are RocketMQ's: what is created, grown or deleted here is so there, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from logstore.compat.bridge.kafka_over_rocketmq.producer_journal import (
    ProducerJournal,
    SentBatch,
)
from logstore.compat.bridge.kafka_over_rocketmq.queue_markers import QueueMarkers
from logstore.compat.bridge.kafka_over_rocketmq.queue_partition import QueuePartition
from logstore.compat.bridge.kafka_over_rocketmq.queue_starts import QueueStarts
from logstore.compat.bridge.kafka_over_rocketmq.queue_store import QueueStore
from logstore.compat.bridge.kafka_over_rocketmq.queues import Queues
from logstore.compat.bridge.kafka_over_rocketmq.synced_topics import (
    SyncedGroupsTopic,
    SyncedTransactionsTopic,
)
from logstore.compat.bridge.noted_topics import NotedTopics
from logstore.compat.bridge.shared_offsets import SharedCoordinator, SharedOffsets
from logstore.compat.bridge.shared_topics import SharedTopics
from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.configs.settings import BrokerSettings
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.compat.kafka.transactions.markers import MarkerWriter
from logstore.compat.kafka.transactions.transactions_log import TransactionsLog
from logstore.compat.rocketmq.broker import Broker as RocketMQBroker
from logstore.compat.rocketmq.topics.topic_changes import delete_topic
from logstore.host import Host
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.store import StoreOptions
from logstore.segments.kafka.topic import Topic
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.tables.topics import TopicConfig


class QueueBroker(Broker):
    """Serves the queues of `rocketmq` to any number of Kafka connections."""

    def __init__(
        self, host: Host, store: QueueStore, config: BrokerSettings, rocketmq: RocketMQBroker
    ) -> None:
        self._rocketmq = rocketmq
        self.queues = store.queues
        self._shared = SharedTopics(rocketmq.topics)
        self._is_wake_pending = False
        super().__init__(host, store, config)
        dispatching = rocketmq.store.dispatching
        self._is_awaited_there = dispatching.is_awaited
        dispatching.is_awaited = self._is_awaited
        rocketmq.store.add_arrival_listener(self._arrived)

    @classmethod
    def over(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        rocketmq: RocketMQBroker,
        noted: NotedTopics,
        starts: QueueStarts,
    ) -> QueueBroker:
        """
        Return a broker over `rocketmq`, which keeps what it needs beside the queues in `directory`.

        `noted` gets the topics whose messages clients of RocketMQ cannot be shown as they are,
        `starts` where queues begin whose first records were deleted.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be used; the text says why and what to do.

        """
        if rocketmq.is_sync_flush:  # an answer waits for the disk, as RocketMQ's does
            settings = {**settings, "log.flush.interval.messages": "1"}
        given = BrokerConfig(settings)
        config = BrokerSettings.of(given)
        options = StoreOptions(node_id=config.node_id, log_defaults=given.topic_defaults())
        store = QueueStore(
            host,
            directory,
            options,
            Queues(rocketmq, noted, starts, ProducerJournal(host, directory)),
        )
        try:
            return cls(host, store, config, rocketmq)
        except BaseException:
            store.abandon()
            raise

    def _open_coordinators(self) -> None:
        """First have the topics that there are, and in their queues what was committed."""
        self._take_over_topics()
        rocketmq_store = self._rocketmq.store
        self.queues.starts.lower(
            lambda topic, queue_id: rocketmq_store.max_queue_offset(
                topic, queue_id, is_committed=False
            )
        )
        self._restore_producers()
        for partition in self._queue_partitions():
            if partition.held is not None:
                partition.held.finish()
        super()._open_coordinators()

    def _queue_partitions(self) -> Iterator[QueuePartition]:
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                if isinstance(partition, QueuePartition):
                    yield partition

    def _restore_producers(self) -> None:
        """Know what idempotent producers sent before the last start."""
        journal = self.queues.journal
        for sent in journal.load():
            partition = self.partition(sent.topic, sent.partition)
            # The power may have taken the end of the queue.
            if isinstance(partition, QueuePartition) and sent.last_offset < partition.end_offset:
                partition.idempotent.restore(sent)
        journal.kept = self._sent_batches
        journal.rewrite()

    def _sent_batches(self) -> Iterator[SentBatch]:
        for partition in self._queue_partitions():
            yield from partition.idempotent.sent_batches()

    def close(self) -> None:
        """Stop cleanly; what is committed is in the queues then."""
        for partition in self._queue_partitions():
            if partition.held is not None:
                partition.held.finish()
        self.queues.journal.sync()
        super().close()
        self.queues.journal.close()

    def abandon(self) -> None:
        """Stop without a word to the disk."""
        for partition in self._queue_partitions():
            partition.abandon_held()
        super().abandon()
        self.queues.journal.close()

    @property
    def data_directory(self) -> str:
        """Where the messages are."""
        return self._rocketmq.store.directory

    # topics

    def _take_over_topics(self) -> None:
        """Have just the topics that RocketMQ has."""
        for topic in list(self.topics.values()):
            if topic.name not in INTERNAL_TOPICS and self._rocketmq.topics.get(topic.name) is None:
                self._drop(topic)
        for config in self._shared.shared():
            self.adopt(config)

    def follow_topics(self) -> None:
        """Follow what happens to RocketMQ's topics; to be called once its registrar runs."""
        topics = self._rocketmq.topics
        told_before = topics.on_change

        def changed(config: TopicConfig) -> None:
            if told_before is not None:
                told_before(config)
            self.adopt(config)

        topics.on_change = changed
        topics.on_remove = self._forget

    def adopt(self, config: TopicConfig) -> None:
        """Have the topic of this configuration, with as many partitions as it has queues."""
        name = config.topic_name
        if not self._shared.is_shared(name):
            return
        count = max(config.read_queue_count, config.write_queue_count)
        topic = self.topics.get(name)
        if topic is None and count:
            super().create_topic(name, count)
        elif topic is not None and len(topic.partitions) < count:
            super().add_partitions(topic, count)

    def _forget(self, name: str) -> None:
        topic = self.topics.get(name)
        if topic is not None:
            self._drop(topic)
            self.queues.forget(name)

    def _drop(self, topic: Topic) -> None:
        """Delete a topic on this side, with all that is held for it."""
        for partition in topic.partitions.values():
            if isinstance(partition, QueuePartition):
                partition.abandon_held()  # should the disk refuse what follows it is opened again
        super().delete_topic(topic)

    def flaw_of_new_topic(self, name: str) -> str | None:
        """Return why RocketMQ cannot have a topic of that name; None if it can."""
        return None if name in INTERNAL_TOPICS else self._shared.flaw_of(name)

    def create_topic(
        self, name: str, partition_count: int, settings: dict[str, str] | None = None
    ) -> Topic:
        """Create a topic on both sides."""
        topic = super().create_topic(name, partition_count, settings)
        if name not in INTERNAL_TOPICS:
            self._rocketmq.topics.put(TopicConfig(name, partition_count, partition_count))
        return topic

    def add_partitions(self, topic: Topic, partition_count: int) -> None:
        """Grow a topic on both sides."""
        super().add_partitions(topic, partition_count)
        config = self._rocketmq.topics.get(topic.name)
        if config is not None:
            self._rocketmq.topics.put(
                attrs.evolve(
                    config, read_queue_count=partition_count, write_queue_count=partition_count
                )
            )

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic on both sides."""
        name = topic.name
        self._drop(topic)
        self.queues.forget(name)
        if name not in INTERNAL_TOPICS:
            delete_topic(self._rocketmq, name)

    # groups

    def _open_groups(self) -> GroupCoordinator:
        shared = SharedOffsets()
        shared.bind(self._rocketmq.store.consumer_offsets, self._shared)
        return SharedCoordinator.of_broker(self, SyncedGroupsTopic(self), shared)

    def _transactions_log(self) -> TransactionsLog:
        return SyncedTransactionsTopic(self)

    def _markers(self) -> MarkerWriter:
        return QueueMarkers(self)

    # who waits

    def _is_awaited(self, queue: tuple[str, int]) -> bool:
        """
        Tell whether a RocketMQ client waits for messages of a queue; wake whoever else does.

        It is asked when messages that were put together can be read, once for all of them.
        """
        self._wake_readers_of(*queue)
        return self._is_awaited_there(queue)

    def _arrived(self, request: DispatchRequest) -> None:
        """Wake whoever waits for the queue of a message that can be read now."""
        self._wake_readers_of(request.topic, request.queue_id)

    def _wake_readers_of(self, topic: str, queue_id: int) -> None:
        partition = self.partition(topic, queue_id)
        if partition is None or partition.on_append is None:
            return
        partition.on_append(partition)
        if not self._is_wake_pending:
            self._is_wake_pending = True
            self.timers.after(0, self._wake)

    def _wake(self) -> None:
        self._is_wake_pending = False
        self.readers.wake()
