"""
DescribeTransactions (65): version 0.

* the state of every asked transactional id: the producer, the timeout, since when it is open (-1:
  it is not), and the partitions in it
* an id that nobody has used is 105, an empty one 42
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka.protocol.admin.transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.transactions.transaction import Transaction


def handle(
    broker: Broker, client: Client, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Return every asked transaction as it stands."""
    from kafka.protocol.admin.transactions import DescribeTransactionsResponse

    del client
    state_class = DescribeTransactionsResponse.TransactionState
    states: list[DescribeTransactionsResponse.TransactionState] = []
    for transactional_id in request.transactional_ids:
        error, found = broker.transactions.describe(transactional_id)
        fields = _nothing() if found is None else _fields(found)
        states.append(state_class(error_code=error, transactional_id=transactional_id, **fields))
    return DescribeTransactionsResponse(version=request.API_VERSION, transaction_states=states)


def _nothing() -> dict[str, Any]:
    return {
        "transaction_state": "",
        "transaction_timeout_ms": 0,
        "transaction_start_time_ms": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": [],
    }


def _fields(transaction: Transaction) -> dict[str, Any]:
    from kafka.protocol.admin.transactions import DescribeTransactionsResponse

    topic_class = DescribeTransactionsResponse.TransactionState.TopicData
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return {
        "transaction_state": transaction.state.java_name,
        "transaction_timeout_ms": transaction.timeout_ms,
        "transaction_start_time_ms": transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "topics": [
            topic_class(topic=topic, partitions=indexes) for topic, indexes in topics.items()
        ],
    }
