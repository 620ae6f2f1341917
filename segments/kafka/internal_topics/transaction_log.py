"""
Transactional producers: the records of ``__transaction_state``.

Each change of a transaction's state writes the whole of it anew. Version 1 came with transactions
of version 2 (KIP-890, release 4.0): what a coordinator needs to hand out a new producer id or epoch
at the end of a transaction.

Source: ``TransactionLogKey.json``, ``TransactionLogValue.json``, ``TransactionState``.
"""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import (
    Held,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
)


class TransactionStatus(enum.IntEnum):
    """How far a transaction is; the numbers stand in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def java_name(self) -> str:
        """Return Kafka's word, as ``CompleteCommit``."""
        return self.name.title().replace("_", "")


@attrs.frozen(kw_only=True)
class TransactionLogKey(Message):
    """Whose transaction."""

    transactional_id: str


@attrs.frozen(kw_only=True)
class PartitionsSchema(Message):
    """Partitions of one topic that the transaction has written to."""

    topic: str
    partition_ids: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class TransactionLogValue(Message):
    """The producer and its transaction; `transaction_status` is a :class:`TransactionStatus`."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    producer_id: Int64
    previous_producer_id: Annotated[Int64, Held(1, tag=0)] = -1
    next_producer_id: Annotated[Int64, Held(1, tag=1)] = -1
    producer_epoch: Int16
    next_producer_epoch: Annotated[Int16, Held(1, tag=3)] = -1
    transaction_timeout_ms: Int32
    transaction_status: Int8
    #: None while no transaction has been begun, or where there are none
    transaction_partitions: tuple[PartitionsSchema, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, Held(1, tag=2)] = 0
