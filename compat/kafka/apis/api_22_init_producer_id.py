"""
InitProducerId (22): versions 0-5.

* without a transactional id: a producer id that nobody had, epoch 0; what the request says about
  an old id (v3) does not matter then, but half of it is 42
* an empty transactional id is 42
* 15, to try again, where the disk refuses to note that the next thousand ids are taken
* with a transactional id: 35, which no client tries again; transactions are not served yet
* v2: flexible; v3: the producer's old id and epoch (KIP-360)
* v4: 90 instead of 47 (not reached); v5: 120 (not reached)

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
_NONE = -1


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Hand out a producer id."""
    del client
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    transactional_id = reader.string()
    reader.i32()  # transaction timeout
    old_id = old_epoch = _NONE
    if request.version >= _FIRST_WITH_OLD_ID:
        old_id, old_epoch = reader.i64(), reader.i16()
    error = _error(transactional_id, old_id, old_epoch)
    producer_id = _NONE
    if error is ErrorCode.NONE:
        try:
            producer_id = broker.new_producer_id()
        except (LogStoreError, OSError) as failure:
            _log.error("no producer id: %s", failure)
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_good = error is ErrorCode.NONE
    writer = Writer(is_flexible=request.is_flexible)
    writer.i32(0)
    writer.i16(error)
    writer.i64(producer_id)
    writer.i16(0 if is_good else _NONE)
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _error(transactional_id: bytes | None, old_id: int, old_epoch: int) -> ErrorCode:
    if (old_id == _NONE) != (old_epoch == _NONE) or transactional_id == b"":
        return ErrorCode.INVALID_REQUEST
    if transactional_id is not None:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE
