"""
The question to the coordinator before the first write of a transaction to a partition.

Before version 2 the client has told the coordinator of its partitions, and here it is asked whether
that is true; from version 2 on the write itself adds the partition. Either way a transaction that
the coordinator does not know of gets nowhere (KIP-890).

==================  ======================  ===============================================
asked by            what is done            a partition that is not in the transaction
==================  ======================  ===============================================
Produce up to 10    verified                48
Produce 11          verified                120
Produce from 12 on  added                   does not occur
TxnOffsetCommit     up to 3, 4, from 5 on   as the three above
==================  ======================  ===============================================

Source: ``AddPartitionsToTxnManager``, ``ReplicaManager.handleProduceAppend``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.transactions.transaction import EPOCH_PER_TRANSACTION, TopicPartition
from logstore.errors import RejectedAppendError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.transaction_verification import Verification


class Support(enum.Enum):
    """What a client understands, by the version of its request."""

    OLD_ERRORS = enum.auto()
    ABORTABLE_ERROR = enum.auto()
    ADDS_PARTITIONS = enum.auto()

    @classmethod
    def of_produce(cls, version: int) -> Support:
        """Return what a client understands that sends Produce in this version."""
        return cls._of(version - 10)

    @classmethod
    def of_offset_commit(cls, version: int) -> Support:
        """Return what a client understands that sends TxnOffsetCommit in this version."""
        return cls._of(version - 3)

    @classmethod
    def _of(cls, step: int) -> Support:
        if step > 1:
            return cls.ADDS_PARTITIONS
        return cls.ABORTABLE_ERROR if step == 1 else cls.OLD_ERRORS


@attrs.frozen
class TransactionalWriter:
    """Who wants to write."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@attrs.frozen
class Admission:
    """What became of each partition: an error, or a guard where its log asks for one."""

    errors: Mapping[TopicPartition, ErrorCode]
    guards: Mapping[TopicPartition, Verification]


def admit(
    broker: Broker,
    writer: TransactionalWriter,
    wanted: Mapping[KafkaPartition, int],
    support: Support,
) -> Admission:
    """
    Ask for every partition in `wanted`, each with the first sequence of its batch.

    Partitions in which the transaction has data already are not asked about. Errors are those
    that a producer understands: 47 instead of 90, 48 instead of 120 for old ones.
    """
    adds = support is Support.ADDS_PARTITIONS
    if not adds and not broker.verifies_transactions:
        return Admission({}, {})
    errors: dict[TopicPartition, ErrorCode] = {}
    guards: dict[TopicPartition, Verification] = {}
    for partition, first_sequence in wanted.items():
        name = partition.topic, partition.index
        try:
            guard = partition.producers.start_verification(
                producer_id=writer.producer_id,
                epoch=writer.producer_epoch,
                first_sequence=first_sequence,
                supports_epoch_bump=adds,
                now_ms=broker.host.clock.wall_ms(),
            )
        except RejectedAppendError as error:
            errors[name] = code_of(error)
        else:
            if guard is not None:
                guards[name] = guard
    if guards:
        for name, code in _ask(broker, writer, list(guards), adds=adds).items():
            if code is not ErrorCode.NONE:
                errors[name] = _as_told(code, support)
    return Admission(errors, guards)


def _ask(
    broker: Broker, writer: TransactionalWriter, partitions: list[TopicPartition], *, adds: bool
) -> dict[TopicPartition, ErrorCode]:
    who = writer.transactional_id, writer.producer_id, writer.producer_epoch
    if not adds:
        return broker.transactions.verify(*who, partitions)
    error = broker.transactions.add_partitions(*who, partitions, EPOCH_PER_TRANSACTION)
    return dict.fromkeys(partitions, error)


def _as_told(error: ErrorCode, support: Support) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is Support.OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    return error
