"""
The answer to a request that the disk refused where no handler expected it.

Kafka answers whatever a request breaks down on (``KafkaApis.handle``, ``handleError``), and the
connection goes on. A coordinator whose topic cannot be had is not available: clients ask again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import error_answer
from logstore.compat.kafka.framing import I16, REQUEST_HEADER, MalformedRequestError, skip_tags
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.registry import APIS, RawRequest
from logstore.errors import StorageError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker

#: APIs of coordinators
_OF_COORDINATORS = frozenset((
    "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup",
    "SyncGroup", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
    "TxnOffsetCommit", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
))  # fmt: skip


def failure_answer(broker: Broker, frame: memoryview, error: Exception) -> list[Chunk] | None:
    """Return the frame that tells of `error`; None for a request that cannot be answered."""
    try:
        key, version, correlation_id = REQUEST_HEADER.unpack_from(frame)
        api = APIS[key]
        position = 10 + max(0, I16.unpack_from(frame, 8)[0])  # behind the client's id
        is_flexible = version >= api.flexible_from
        if is_flexible:
            position = skip_tags(frame, position)
        request = RawRequest(version, correlation_id, frame, position, is_flexible)
        code = code_of(error)
        if api.name in _OF_COORDINATORS and isinstance(error, (StorageError, OSError)):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return error_answer(broker, api, request, code, "")
    except (MalformedRequestError, struct.error, IndexError, KeyError, ValueError):
        return None
