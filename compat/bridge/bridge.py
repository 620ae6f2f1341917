"""
One store with a broker of its own protocol, and a broker of the other one over it.

The broker of the layout is always there, whether or not anybody connects to it: it does what the
store needs done. The other one keeps what the layout has no place for in a directory beside the
data, called like it with the protocol's name behind a dot; readers of the data never see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.compat.bridge.beside import claim_beside
from logstore.compat.bridge.kafka_over_rocketmq.queue_broker import QueueBroker
from logstore.compat.bridge.kafka_over_rocketmq.queue_starts import QueueStarts
from logstore.compat.bridge.kafka_over_rocketmq.shown_queues import open_shown
from logstore.compat.bridge.noted_topics import NotedTopics
from logstore.compat.bridge.rocketmq_over_kafka.partition_broker import PartitionBroker
from logstore.compat.bridge.rocketmq_over_kafka.shown_broker import ShownBroker
from logstore.compat.bridge.shared_offsets import SharedOffsets
from logstore.compat.rocketmq.standalone import Standalone
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.rocketmq.registrar import Reach


class Bridge:
    """A Kafka broker and a RocketMQ broker on one store; `layout` is that of one of them."""

    def __init__(self, layout: str, kafka: Broker, standalone: Standalone) -> None:
        self.layout = layout
        self.kafka = kafka
        self.standalone = standalone

    @classmethod
    def open(
        cls,
        host: Host,
        directory: str,
        layout: str,
        settings: Mapping[str, str],
        *,
        name_servers: Sequence[tuple[str, int]] = (),
        is_parallel: bool = False,
    ) -> Bridge:
        """
        Open (or create, or recover) the store in `directory`, and both brokers.

        `settings` are those of both: keys of ``server.properties`` and of ``broker.conf``.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        if layout == "kafka":
            return cls._open_kafka(host, directory, settings, name_servers, is_parallel)
        beside = claim_beside(host, directory, "kafka")
        noted, starts = NotedTopics(host, beside), QueueStarts(host, beside)
        broker = open_shown(host, directory, settings, noted, starts)
        try:
            standalone = Standalone.around(broker, directory, settings, name_servers=name_servers)
            kafka = QueueBroker.over(host, beside, settings, broker, noted, starts)
        except BaseException:
            broker.abandon()
            raise
        return cls(layout, kafka, standalone)

    @classmethod
    def _open_kafka(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        name_servers: Sequence[tuple[str, int]],
        is_parallel: bool,
    ) -> Bridge:
        offsets = SharedOffsets()
        kafka = ShownBroker.open_shown(host, directory, settings, offsets, is_parallel=is_parallel)
        try:
            beside = claim_beside(host, directory, "rocketmq")
            broker = PartitionBroker.over(host, beside, settings, kafka)
            offsets.bind(broker.store.consumer_offsets, broker.shared)
            standalone = Standalone.around(broker, beside, settings, name_servers=name_servers)
        except BaseException:
            kafka.abandon()
            raise
        return cls("kafka", kafka, standalone)

    def start_kafka(self, host: str, port: int) -> None:
        """Say where Kafka clients connect, and start what the broker does by the clock."""
        self.kafka.advertised_host, self.kafka.advertised_port = host, port
        self.kafka.start_housekeeping()

    def start_rocketmq(self, reach: Reach) -> None:
        """Start what the RocketMQ side does by the clock, once it knows where it is."""
        self.standalone.start(reach)
        for broker in (self.kafka, self.standalone.broker):
            if isinstance(broker, QueueBroker | PartitionBroker):
                broker.follow_topics()
        self._unlist_topics()

    def _unlist_topics(self) -> None:
        """
        Have the name server forget what is deleted on either side.

        A RocketMQ administrator tells broker and name server, one of Kafka knows of no second.
        """
        topics, name_server = self.standalone.broker.topics, self.standalone.name_server
        follow = topics.on_remove
        if name_server is None or follow is None:
            return
        routes = name_server.routes

        def removed(name: str) -> None:
            follow(name)
            routes.delete_topic(name, None)

        topics.on_remove = removed

    def stop(self) -> None:
        """Say goodbye to the name servers; to be called while the servers still run."""
        self.standalone.stop()

    def close(self) -> None:
        """Stop cleanly: what stands on the other goes first."""
        for part in self._parts():
            part.close()

    def abandon(self) -> None:
        """Stop without a word to the disk: the data is thrown away."""
        for part in self._parts():
            part.abandon()

    def _parts(self) -> tuple[Broker | Standalone, Broker | Standalone]:
        if self.layout == "rocketmq":
            return self.kafka, self.standalone
        return self.standalone, self.kafka
