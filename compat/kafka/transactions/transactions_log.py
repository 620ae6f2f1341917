"""
What transactions leave on disk: the records of ``__transaction_state`` and the port to them.

The key is the transactional id, the value all that is known of it, a tombstone ends it. Values are
written in version 1 from ``transaction.version`` 1 on, before in version 0, which knows no former
and next producer id.

Source: ``TransactionLog``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from logstore.compat.kafka.groups.modern.hash_order import (
    members_in_order,
    topic_partitions_in_order,
)
from logstore.compat.kafka.transactions.transaction import TopicPartition, Transaction
from logstore.errors import StorageError
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
    decode_versioned,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionStatus,
)

#: One record as the log takes and gives it: key, and value or None for a tombstone.
TransactionRecord = tuple[bytes, bytes | None]
_KEY_VERSION = 0
_FIRST_WITH_FLEXIBLE_VALUES = 1


class TransactionsLog(Protocol):
    """Where the coordinator keeps what must survive: ``__transaction_state``, or the like."""

    def append(self, transactional_id: str, record: TransactionRecord) -> None:
        """
        Write a record to the partition of the id; a returned call is a kept promise.

        Raises:
            LogStoreError, OSError: nothing was written, or it may not last.

        """
        ...

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of the id's partition, which markers carry."""
        ...

    def replay(self) -> Iterator[TransactionRecord]:
        """Yield all records; those of one id in the order in which they were written."""
        ...


class TransactionRecordError(StorageError):
    """A record of the log cannot be read."""


def encode_key(transactional_id: str) -> bytes:
    """Return the key of an id's records."""
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)


def encode_record(transaction: Transaction, transaction_version: int) -> TransactionRecord:
    """Return the record of a transaction at that level of ``transaction.version``."""
    is_flexible = transaction_version >= _FIRST_WITH_FLEXIBLE_VALUES
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if is_flexible else -1,
        next_producer_id=transaction.next_producer_id if is_flexible else -1,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_topics(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_transaction_version if is_flexible else 0,
    )
    version = 1 if is_flexible else 0
    return encode_key(transaction.transactional_id), encode_versioned(value, version)


def _topics(transaction: Transaction) -> tuple[PartitionsSchema, ...] | None:
    if transaction.state is TransactionStatus.EMPTY:
        assert not transaction.partitions
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, index in topic_partitions_in_order(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    return tuple(
        PartitionsSchema(topic=topic, partition_ids=tuple(by_topic[topic]))
        for topic in members_in_order(by_topic)  # a map that topics, too, are put into one by one
    )


def decode_record(record: TransactionRecord) -> tuple[str, Transaction | None] | None:
    """
    Return the id and its transaction (None: forgotten), or None for a record of the future.

    Raises:
        TransactionRecordError: it cannot be read.

    """
    key, value = record
    try:
        if decode_version(key) != _KEY_VERSION:
            return None
        found = decode_message(TransactionLogKey, key, _KEY_VERSION, 2).transactional_id
        # As Java reads it: what is no text could not be told to anybody.
        transactional_id = found.encode(errors="surrogateescape").decode(errors="replace")
        if value is None:
            return transactional_id, None
        if decode_version(value) not in TransactionLogValue.VERSIONS:
            return None
        return transactional_id, _transaction(transactional_id, value)
    except (MessageError, ValueError) as error:
        raise TransactionRecordError(f"__transaction_state: {error}") from error


def _transaction(transactional_id: str, data: bytes) -> Transaction:
    _, value = decode_versioned(TransactionLogValue, data)
    state = TransactionStatus(value.transaction_status)
    partitions: frozenset[TopicPartition] = frozenset()
    if state is not TransactionStatus.EMPTY:
        partitions = frozenset(
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        )
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )
