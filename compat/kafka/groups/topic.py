"""The ``__consumer_offsets`` topic as the log of the group coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.groups.partitioning import partition_of
from logstore.compat.kafka.topics.creation import automatic_shape
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.errors import WriteFailedError
from logstore.segments.kafka.record import Record, decode_records, encode_batch

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition


class GroupsTopic:
    """
    Implements :class:`logstore.compat.kafka.groups.offsets_log.OffsetsLog`.

    The topic is created at the first write, with Kafka's settings for it.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def _partition(self, group_id: str) -> KafkaPartition:
        topic = self._broker.topics.get(GROUPS_TOPIC)
        if topic is None:
            count, settings = automatic_shape(self._broker, GROUPS_TOPIC)
            topic = self._broker.create_topic(GROUPS_TOPIC, count, settings)
        return topic.partitions[partition_of(group_id, len(topic.partitions))]

    def append(self, group_id: str, records: list[GroupRecord]) -> None:
        """Write the records of one group as one batch."""
        now_ms = self._broker.host.clock.wall_ms()
        data = encode_batch(
            [
                Record(offset=index, timestamp_ms=now_ms, key=key, value=value)
                for index, (key, value) in enumerate(records)
            ]
        )
        self._partition(group_id).append_produced(memoryview(data), now_ms)
        self._flush_due()

    def _flush_due(self) -> None:
        """Flush here and now if ``flush.messages`` asks for it: the caller answers right away."""
        for partition in self._broker.flusher.take_due():
            try:
                partition.flush()
            except OSError as error:
                raise WriteFailedError(
                    f"{partition.topic}-{partition.index}: {error.strerror}; what was written "
                    "may not survive a power loss"
                ) from error

    def replay(self) -> Iterator[GroupRecord]:
        """Yield every record of every partition in order."""
        topic = self._broker.topics.get(GROUPS_TOPIC)
        if topic is None:
            return
        for partition in topic.partitions.values():
            for batch in partition.batches():
                if batch.is_control:
                    continue
                for record in decode_records(batch.data):
                    if record.key is not None:
                        yield record.key, record.value
