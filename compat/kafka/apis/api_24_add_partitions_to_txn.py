"""
AddPartitionsToTxn (24): versions 0-5.

* a partition that does not exist is 3, and then no other is added: 55
* a transaction that another node coordinates is 16 at its partitions
* the first partition begins the transaction
* v2: 90 instead of 47; v3: flexible
* v4: several transactions, only from brokers; ``verify_only`` asks whether the partitions were
  added, and adds none
* v5: TRANSACTION_ABORTABLE may be answered
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.topics.names import TRANSACTIONS_TOPIC
from logstore.compat.kafka.transactions.transaction import EPOCH_PER_TRANSACTION, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_OF_BROKERS = 4
_FIRST_WITH_FENCED = 2


@attrs.frozen
class _Asked:
    """What is asked for one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    #: all that are named, those without partitions too
    topics: list[Any]
    is_verify_only: bool = False
    #: whether another node coordinates it
    is_foreign: bool = False

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions by their topics' names."""
        return [(topic.name, index) for topic in self.topics for index in topic.partitions]


def handle(
    broker: Broker, client: Client, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Add (or verify) the partitions of every transaction."""
    from kafka.protocol.producer.transaction import AddPartitionsToTxnResponse

    version = request.API_VERSION
    node_id = broker.nodes.node_of(client.listener).node_id

    def is_foreign(name: str) -> bool:
        find = broker.placements.coordinator_of
        return bool(name) and find(TRANSACTIONS_TOPIC, name) != node_id

    if version < _FIRST_OF_BROKERS:
        name = request.v3_and_below_transactional_id
        asked = _Asked(
            name,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            list(request.v3_and_below_topics),
            is_foreign=is_foreign(name),
        )
        return AddPartitionsToTxnResponse(
            version=version,
            results_by_topic_v3_and_below=_results(broker, version, asked),
        )
    result_class = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
    results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = []
    for one in request.transactions:
        asked = _Asked(
            one.transactional_id,
            one.producer_id,
            one.producer_epoch,
            list(one.topics),
            one.verify_only,
            is_foreign=is_foreign(one.transactional_id),
        )
        topics = _results(broker, version, asked)
        results.append(result_class(transactional_id=one.transactional_id, topic_results=topics))
    return AddPartitionsToTxnResponse(version=version, results_by_transaction=results)


def _answer(
    broker: Broker, version: int, asked: _Asked
) -> dict[TopicPartition, ErrorCode] | ErrorCode:
    """Return what became of each partition, or of all of them."""
    missing = {one for one in asked.partitions if broker.partition(*one) is None}
    if missing:
        unknown, spared = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        return {one: unknown if one in missing else spared for one in asked.partitions}
    if asked.is_foreign:
        return ErrorCode.NOT_COORDINATOR
    who = asked.transactional_id, asked.producer_id, asked.producer_epoch
    if asked.is_verify_only:
        return broker.transactions.verify(*who, asked.partitions)
    client_version = EPOCH_PER_TRANSACTION if version >= _FIRST_OF_BROKERS else 0
    error = broker.transactions.add_partitions(*who, asked.partitions, client_version)
    if error is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _results(broker: Broker, version: int, asked: _Asked) -> list[Any]:
    from kafka.protocol.producer.transaction import AddPartitionsToTxnResponse

    topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    answer = _answer(broker, version, asked)
    topics: Iterable[tuple[str, Iterable[tuple[int, ErrorCode]]]]
    if isinstance(answer, ErrorCode):  # it is told of all that was asked, however it was asked
        topics = [
            (topic.name, [(index, answer) for index in topic.partitions]) for topic in asked.topics
        ]
    else:
        by_topic: dict[str, list[tuple[int, ErrorCode]]] = {}
        for (topic, index), error in answer.items():
            by_topic.setdefault(topic, []).append((index, error))
        topics = by_topic.items()
    partition_class = topic_class.AddPartitionsToTxnPartitionResult
    return [
        topic_class(
            name=name,
            results_by_partition=[
                partition_class(partition_index=index, partition_error_code=error)
                for index, error in codes
            ],
        )
        for name, codes in topics
    ]
