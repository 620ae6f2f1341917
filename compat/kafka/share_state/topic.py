"""The ``__share_group_state`` topic as the log of the share coordinator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.kafka.java_int import java_int
from logstore.compat.kafka.share_state.lost_records import forget_lost_records
from logstore.compat.kafka.share_state.records import StateRecord
from logstore.compat.kafka.share_state.share_coordinator import (
    ShareCoordinator,
    ShareCoordinatorConfig,
)
from logstore.compat.kafka.share_state.state_log import ReplayedState, StatePosition
from logstore.compat.kafka.topics.internal_partitions import internal_partition
from logstore.compat.kafka.topics.names import SHARE_GROUPS_TOPIC
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.coordinator_batch import encode_coordinator_batch
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.segments.kafka.record import decode_records

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.share_state.persister import SharePartitionKey

#: as Java reads a UUID in base64
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


class ShareStateTopic:
    """
    Implements :class:`logstore.compat.kafka.share_state.state_log.StateLog`.

    The topic is created when somebody looks for the coordinator, or at the first write.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        codec = broker.config.given.integer("share.coordinator.state.topic.compression.codec")
        self._codec = Codec(codec)

    def append(self, key: SharePartitionKey, record: StateRecord) -> StatePosition:
        """Write one record as a batch of its own."""
        broker = self._broker
        now_ms = broker.host.clock.wall_ms()
        partition = internal_partition(broker, SHARE_GROUPS_TOPIC, coordinator_key(key))
        data = encode_coordinator_batch([record], now_ms, codec=self._codec)
        offset = partition.append_coordinated(memoryview(data), now_ms)
        return StatePosition(partition.index, offset)

    def flush(self) -> None:
        """Flush what was appended, if the topic's settings want that at once."""
        self._broker.flusher.flush_due_here()

    def replay(self) -> Iterator[ReplayedState]:
        """Yield every record of every partition in order."""
        topic = self._broker.topics.get(SHARE_GROUPS_TOPIC)
        if topic is None:
            return
        for index, partition in topic.partitions.items():
            for batch in partition.batches():
                if batch.is_control:
                    continue
                for record in decode_records(batch.data):
                    if record.key is not None and record.offset >= partition.start_offset:
                        position = StatePosition(index, record.offset)
                        yield ReplayedState((record.key, record.value), position)

    def delete_below(self, position: StatePosition) -> None:
        """Move the log start of a partition; its segments go as retention finds them."""
        topic = self._broker.topics.get(SHARE_GROUPS_TOPIC)
        if topic is not None:
            topic.partitions[position.partition].delete_records(position.offset)


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the text by which a share-partition's coordinator is found."""
    return f"{key.group_id}:{uuid_to_text(key.topic_id)}:{key.partition}"


def is_coordinator_key(text: str) -> bool:
    """Tell whether a text names a share-partition; the group may have colons in its name."""
    group_id, _, rest = text.rstrip(":").rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    is_topic = _TOPIC_ID.fullmatch(topic_id) is not None
    return bool(group_id.strip()) and is_topic and java_int(rest) is not None


def open_share_state(broker: Broker) -> ShareCoordinator:
    """
    Return the share coordinator of a broker, with what the topic holds.

    Raises:
        ShareStateRecordError: a record cannot be read.

    """
    given = broker.config.given
    config = ShareCoordinatorConfig(
        given.integer("share.coordinator.snapshot.update.records.per.snapshot"),
        given.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        given.integer("share.coordinator.state.topic.prune.interval.ms"),
    )

    def partition_count_of(topic_id: bytes) -> int:
        topic = broker.topic_by_id(topic_id)
        return 0 if topic is None else topic.partition_count

    coordinator = ShareCoordinator(
        config, broker.timers, ShareStateTopic(broker), partition_count_of
    )
    coordinator.load()
    forget_lost_records(broker, coordinator)
    return coordinator
