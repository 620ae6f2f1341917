"""Where in Kafka's own topics a group, a transactional id or a share-partition is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.partitioning import partition_of
from logstore.compat.kafka.topics.creation import internal_topic
from logstore.errors import StorageError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.topic import Topic


def internal_partition_of(topic: Topic, key: str) -> int:
    """
    Return in which partition of an internal topic a key lives.

    The count is that of the whole topic: a directory of a larger cluster may lack some.
    """
    return partition_of(key, topic.partition_count)


def internal_partition(broker: Broker, name: str, key: str) -> KafkaPartition:
    """
    Return the partition of one of Kafka's own topics in which a key lives.

    Raises:
        LogStoreError, OSError: the disk refused to make the topic, or lacks the partition.

    """
    topic = internal_topic(broker, name)
    index = internal_partition_of(topic, key)
    partition = topic.partitions.get(index)
    if partition is None:
        raise StorageError(f"{broker.store.directory}: {name}-{index} is not there")
    return partition
