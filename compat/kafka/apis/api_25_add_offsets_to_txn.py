"""
AddOffsetsToTxn (25): versions 0-4.

* adds the partition of ``__consumer_offsets`` that the group lives in to the transaction, for
  TxnOffsetCommit; clients that speak TxnOffsetCommit from version 5 on need not ask
* v2: 90 instead of 47; v3: flexible; v4: TRANSACTION_ABORTABLE may be answered
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.topics.names import GROUPS_TOPIC

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_FENCED = 2


def handle(
    broker: Broker, client: Client, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Take the group's offsets into the transaction."""
    from kafka.protocol.producer.transaction import AddOffsetsToTxnResponse

    del client
    partition = (GROUPS_TOPIC, broker.groups.partition_of(request.group_id))
    error = broker.transactions.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, [partition], 0
    )
    if error is ErrorCode.PRODUCER_FENCED and request.API_VERSION < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(version=request.API_VERSION, error_code=error)
