"""
EndTxn (26): versions 0-5.

* commits or aborts; when the answer comes the markers are written too, where Kafka writes them
  afterwards; only if a disk refuses one, the next request may meet 51
* the same end asked for again is answered as the first time
* v2: 90 instead of 47; v3: flexible; v4: TRANSACTION_ABORTABLE may be answered
* v5: transactions of version 2: the answer brings the producer's next epoch, or its next id
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.ending import End
from logstore.compat.kafka.transactions.transaction import EPOCH_PER_TRANSACTION

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import EndTxnRequest, EndTxnResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_FENCED = 2
_FIRST_WITH_EPOCH_BUMP = 5


def handle(broker: Broker, client: Client, request: EndTxnRequest) -> EndTxnResponse:
    """End the producer's transaction."""
    from kafka.protocol.producer.transaction import EndTxnResponse

    del client
    version = request.API_VERSION
    bumps = version >= _FIRST_WITH_EPOCH_BUMP
    ended = broker.transactions.end(
        End(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            is_commit=request.committed,
            transaction_version=EPOCH_PER_TRANSACTION if bumps else 0,
        )
    )
    error = ended.error_code
    if error is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    if not bumps:
        return EndTxnResponse(version=version, error_code=error)
    return EndTxnResponse(
        version=version,
        error_code=error,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
    )
