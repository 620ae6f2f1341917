"""
The logs of transactions and of their offsets where the records are held beside queues: synced.

Over Kafka's own layout a power loss takes the end of every log; over queues what is committed must
be there as a whole, or not at all. So no step counts before the one in front of it is durable: the
offsets and the partitions of a transaction, the decision, the markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.queue_partition import QueuePartition
from logstore.compat.kafka.groups.topic import GroupsTopic
from logstore.compat.kafka.transactions.topic import TransactionsTopic
from logstore.compat.kafka.transactions.transactions_log import TransactionRecord, decode_record
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.offsets_log import GroupRecord, TransactionalProducer
    from logstore.compat.kafka.transactions.markers import Marker
    from logstore.compat.kafka.transactions.transaction import Transaction

_COMPLETE = (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)


class SyncedTransactionsTopic(TransactionsTopic):
    """The ``__transaction_state`` topic; what comes after its records may count on them."""

    def append(self, transactional_id: str, record: TransactionRecord) -> None:
        """Write one record durably; the completion, which asks for nothing, may wait."""
        found = decode_record(record)
        transaction = None if found is None else found[1]
        if transaction is not None and transaction.state is TransactionStatus.PREPARE_COMMIT:
            self._settle(transaction)
        super().append(transactional_id, record)
        if transaction is None or transaction.state not in _COMPLETE:
            self._partition(transactional_id).flush()

    def _settle(self, transaction: Transaction) -> None:
        """Make durable what is about to be committed, also where nobody waited for it."""
        for topic, index in transaction.partitions:
            partition = self._broker.partition(topic, index)
            if isinstance(partition, QueuePartition):
                partition.settle_held()


class SyncedGroupsTopic(GroupsTopic):
    """The ``__consumer_offsets`` topic; offsets in transactions, and their ends, are durable."""

    def append(
        self,
        group_id: str,
        records: list[GroupRecord],
        producer: TransactionalProducer | None = None,
    ) -> None:
        """Write the records of one group as one batch."""
        super().append(group_id, records, producer)
        if producer is not None:
            self._partitions()[self.partition_of(group_id)].flush()

    def append_marker(self, partition: int, marker: Marker) -> None:
        """Write the end of a transaction to a partition, durably."""
        super().append_marker(partition, marker)
        self._partitions()[partition].flush()
