"""
The store of a Kafka broker over a RocketMQ store: a Kafka store beside it, without the data.

What Kafka knows of topics and RocketMQ does not (ids, settings), its cluster's and producers' ids
and its internal topics stand in a directory of their own in Kafka's layout. The partitions of all
other topics are queues.
"""

from __future__ import annotations

from logstore.compat.bridge.kafka_over_rocketmq.queue_partition import QueuePartition
from logstore.compat.bridge.kafka_over_rocketmq.queues import Queues
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.host import Host
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.store import KafkaStore, StoreOptions


class QueueStore(KafkaStore):
    """All topics of a Kafka broker over `queues`; `directory` is its own."""

    def __init__(self, host: Host, directory: str, options: StoreOptions, queues: Queues) -> None:
        self.queues = queues
        super().__init__(host, directory, options)

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
        """Return a real partition of an internal topic, or one over a queue."""
        if topic in INTERNAL_TOPICS:
            return super().make_partition(
                host,
                files,
                topic,
                index,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
        return QueuePartition(
            self.queues,
            host,
            files,
            topic,
            index,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
