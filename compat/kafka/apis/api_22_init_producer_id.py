"""
InitProducerId (22): versions 0-5.

* without a transactional id: a producer id that nobody had, epoch 0; what the request says about
  an old id (v3) does not matter then, but half of it is 42
* an empty transactional id is 42
* 15, to try again, where the disk refuses to note that the next thousand ids are taken
* with a transactional id: the id's next epoch, by which a producer before is shut out; 51, to try
  again, while its transaction is aborted; 50 for a timeout above ``transaction.max.timeout.ms``
* v2: flexible; v3: the producer's old id and epoch (KIP-360)
* v4: 90 instead of 47; v5: TRANSACTION_ABORTABLE may be answered

Read and written by hand: an idempotent producer, which is the default, waits for it before its
first record.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_log = logging.getLogger(__name__)

_FIRST_WITH_OLD_ID = 3
_FIRST_WITH_FENCED = 4
_NONE = -1


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Hand out a producer id."""
    del client
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    transactional_id = reader.string()
    timeout_ms = reader.i32()
    old_id = old_epoch = _NONE
    if request.version >= _FIRST_WITH_OLD_ID:
        old_id, old_epoch = reader.i64(), reader.i16()
    reader.tags()
    if (old_id == _NONE) != (old_epoch == _NONE):
        given = (ErrorCode.INVALID_REQUEST, _NONE, _NONE)
    elif transactional_id is None:
        given = _idempotent(broker)
    else:
        expected = None if old_id == _NONE else (old_id, old_epoch)
        given = _transactional(broker, transactional_id, timeout_ms, expected)
    error, producer_id, epoch = given
    if error is ErrorCode.PRODUCER_FENCED and request.version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    writer = Writer(is_flexible=request.is_flexible)
    writer.i32(0)
    writer.i16(error)
    writer.i64(producer_id)
    writer.i16(epoch)
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _idempotent(broker: Broker) -> tuple[ErrorCode, int, int]:
    try:
        return ErrorCode.NONE, broker.new_producer_id(), 0
    except (LogStoreError, OSError) as failure:
        _log.error("no producer id: %s", failure)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, _NONE, _NONE


def _transactional(
    broker: Broker, transactional_id: bytes, timeout_ms: int, expected: tuple[int, int] | None
) -> tuple[ErrorCode, int, int]:
    from logstore.compat.kafka.transactions.initialising import Initialising

    name = transactional_id.decode(errors="replace")
    given = broker.transactions.init_producer_id(Initialising(name, timeout_ms, expected))
    return given.error_code, given.producer_id, given.producer_epoch
