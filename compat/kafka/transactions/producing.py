"""The transactional batches of a Produce request, before the first of them is appended."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.transactions.admission import Support
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.transaction_verification import Verification

_MAGIC_POSITION = 16
_ATTRIBUTES_POSITION = 22  # the low byte
_TRANSACTIONAL_MASK = 0x10
_PRODUCER = struct.Struct(">qhi")  # id, epoch, base sequence
_PRODUCER_POSITION = 43
#: what old clients may not try again as it is, told as something that they do
_TOLD_AS_RETRIABLE = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class ProduceAdmission(NamedTuple):
    """What became of the partitions: a refusal, a guard for the log, or (in neither) nothing."""

    refusals: Mapping[KafkaPartition, RefusedRequestError]
    guards: Mapping[KafkaPartition, Verification]


#: the usual case: no batch is transactional
NOTHING_SPECIAL = ProduceAdmission({}, {})


def is_transactional(records: memoryview) -> bool:
    """Tell whether a batch says that it belongs to a transaction."""
    return (
        len(records) >= HEADER_BYTES
        and records[_ATTRIBUTES_POSITION] & _TRANSACTIONAL_MASK != 0
        and records[_MAGIC_POSITION] == MAGIC
    )


def admit_produced(
    broker: Broker,
    version: int,
    transactional_id: bytes | None,
    batches: Iterable[tuple[KafkaPartition, memoryview]],
) -> ProduceAdmission:
    """Ask the coordinator about the partitions of a request's transactional batches."""
    everything = list(batches)
    found = [(partition, records) for partition, records in everything if is_transactional(records)]
    if not found:
        return NOTHING_SPECIAL
    headers = {
        partition: _PRODUCER.unpack_from(records, _PRODUCER_POSITION)
        for partition, records in found
    }
    assert transactional_id is not None, "without one all was refused before"
    if len({header[:2] for header in headers.values() if header[0] >= 0}) > 1:
        refusal = RefusedRequestError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return ProduceAdmission({partition: refusal for partition, _ in everything}, {})
    return _ask(broker, version, transactional_id.decode(errors="replace"), headers)


def _ask(
    broker: Broker,
    version: int,
    transactional_id: str,
    headers: Mapping[KafkaPartition, tuple[int, int, int]],
) -> ProduceAdmission:
    from logstore.compat.kafka.transactions.admission import Support, TransactionalWriter, admit

    support = Support.of_produce(version)
    wanted = {partition: header[2] for partition, header in headers.items() if header[0] >= 0}
    if not wanted:
        return NOTHING_SPECIAL
    producer_id, epoch, _ = headers[next(iter(wanted))]
    admission = admit(
        broker, TransactionalWriter(transactional_id, producer_id, epoch), wanted, support
    )
    by_name = {(partition.topic, partition.index): partition for partition in wanted}
    return ProduceAdmission(
        {by_name[name]: _refusal(error, support) for name, error in admission.errors.items()},
        {by_name[name]: guard for name, guard in admission.guards.items()},
    )


def _refusal(error: ErrorCode, support: Support) -> RefusedRequestError:
    """Return how a producer is told; a message is only said where Kafka says one."""
    from logstore.compat.kafka.transactions.admission import Support

    is_retriable = error in _TOLD_AS_RETRIABLE or (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not Support.ADDS_PARTITIONS
    )
    if is_retriable:
        return RefusedRequestError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}",
        )
    if error is ErrorCode.INVALID_TXN_STATE:
        return RefusedRequestError(error, "Partition was not added to the transaction")
    return RefusedRequestError(error)
