"""The ``__consumer_offsets`` topic as the log of the group coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.offsets_log import (
    NO_PRODUCER_ID,
    GroupRecord,
    ReplayedRecord,
    TransactionalProducer,
    TransactionEnd,
)
from logstore.compat.kafka.topics.creation import internal_topic
from logstore.compat.kafka.topics.internal_partitions import (
    internal_partition,
    internal_partition_of,
)
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.kafka.transactions.marking import append_marker
from logstore.segments.kafka.append_errors import MessageTooLargeError
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.coordinator_batch import encode_coordinator_batch
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.transactions.markers import Marker
    from logstore.segments.kafka.partition import KafkaPartition


class GroupsTopic:
    """
    Implements :class:`logstore.compat.kafka.groups.offsets_log.OffsetsLog`.

    The topic is created when somebody looks for the coordinator, or at the first write.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._codec = Codec(broker.config.given.integer("offsets.topic.compression.codec"))

    def _partitions(self) -> dict[int, KafkaPartition]:
        return internal_topic(self._broker, GROUPS_TOPIC).partitions

    def partition_of(self, group_id: str) -> int:
        """Return the number of the group's partition."""
        return internal_partition_of(internal_topic(self._broker, GROUPS_TOPIC), group_id)

    def append(
        self,
        group_id: str,
        records: list[GroupRecord],
        producer: TransactionalProducer | None = None,
    ) -> None:
        """Write the records of one group as one batch."""
        now_ms = self._broker.host.clock.wall_ms()
        data = encode_coordinator_batch(
            records,
            now_ms,
            codec=self._codec,
            # What a coordinator writes is not numbered: with Kafka each batch begins at 0.
            producer=None if producer is None else (producer.producer_id, producer.epoch, 0),
        )
        partition = internal_partition(self._broker, GROUPS_TOPIC, group_id)
        size_max = partition.config.max_message_bytes
        if len(data) > size_max:
            raise MessageTooLargeError(
                f"the batch has {len(data)} bytes, max.message.bytes is {size_max}"
            )
        guard = None if producer is None else producer.guard
        if producer is None and partition.config.target_codec(self._codec) != self._codec:
            partition.append_produced(memoryview(data), now_ms)
        else:
            partition.append_coordinated(memoryview(data), now_ms, guard)

    def flush(self) -> None:
        """Flush what was appended, if the topic's settings want that at once."""
        self._broker.flusher.flush_due_here()

    def append_marker(self, partition: int, marker: Marker) -> None:
        """Write the end of a transaction to a partition."""
        append_marker(self._broker, self._partitions()[partition], marker)

    def replay(self) -> Iterator[ReplayedRecord | TransactionEnd]:
        """Yield every record and every marker of every partition in order."""
        topic = self._broker.topics.get(GROUPS_TOPIC)
        if topic is None:
            return
        for index, partition in topic.partitions.items():
            for batch in partition.batches():
                yield from _marker(index, batch) if batch.is_control else _records(index, batch)


def _records(index: int, batch: RecordBatch) -> Iterator[ReplayedRecord]:
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    for record in decode_records(batch.data):
        if record.key is not None:
            yield ReplayedRecord(record.key, record.value, index, producer_id)


def _marker(index: int, batch: RecordBatch) -> Iterator[TransactionEnd]:
    for record in decode_records(batch.data):
        marker = decode_marker(record)
        if marker is not None:
            yield TransactionEnd(index, batch.producer_id, not marker.is_abort, record.timestamp_ms)
