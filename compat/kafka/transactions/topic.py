"""The ``__transaction_state`` topic as the log of the transaction coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.kafka.topics.internal_partitions import internal_partition
from logstore.compat.kafka.topics.names import TRANSACTIONS_TOPIC
from logstore.compat.kafka.transactions.transactions_log import TransactionRecord
from logstore.segments.kafka.coordinator_batch import encode_coordinator_batch
from logstore.segments.kafka.record import decode_records

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition


class TransactionsTopic:
    """
    Implements :class:`logstore.compat.kafka.transactions.transactions_log.TransactionsLog`.

    The topic is created when somebody looks for the coordinator, or at the first write.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def _partition(self, transactional_id: str) -> KafkaPartition:
        return internal_partition(self._broker, TRANSACTIONS_TOPIC, transactional_id)

    def append(self, transactional_id: str, record: TransactionRecord) -> None:
        """Write one record as a batch of its own."""
        now_ms = self._broker.host.clock.wall_ms()
        data = encode_coordinator_batch([record], now_ms)
        self._partition(transactional_id).append_coordinated(memoryview(data), now_ms)
        self._broker.flusher.flush_due_here()

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of the id's partition."""
        return self._partition(transactional_id).leader_epoch

    def replay(self) -> Iterator[TransactionRecord]:
        """Yield every record of every partition in order."""
        topic = self._broker.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return
        for partition in topic.partitions.values():
            for batch in partition.batches():
                if batch.is_control:
                    continue
                for record in decode_records(batch.data):
                    if record.key is not None:
                        yield record.key, record.value
