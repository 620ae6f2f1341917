"""
Produce (0): versions 3-13, advertised from 0 (KAFKA-18659: old clients look for it).

* one record batch of magic 2 per partition; it is appended as it came, offsets stamped in place
* acks 0: no answer, the connection is closed on an error; acks 1 and -1: answered after the append
* with ``flush.messages`` the answer waits for the flush that covers the append
* internal topics are closed to clients other than ``__admin_client``
* v5: log start offset; v7: zstd allowed; v8: record errors and message (KIP-467)
* v9: flexible; v10: current leader tags (KIP-951); v13: topics by id (KIP-516)

Read and written by hand: no object per record, no copy of record bytes.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import I16, I32, MalformedRequestError, Reader, framed, uvarint
from logstore.compat.kafka.produce_route import ProduceRoute
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.registry import RawRequest, register
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.flush import NEVER
from logstore.segments.kafka.append_errors import InvalidRecordError
from logstore.segments.kafka.compression import Codec

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)
_RESULT = struct.Struct(">ihqqq")  # index, error, base offset, append time, log start offset
_RESULT_V3 = struct.Struct(">ihqq")
_NO_ERRORS_V8 = struct.pack(">ih", 0, -1)
_INTERNAL = frozenset((b"__consumer_offsets", b"__transaction_state", b"__share_group_state"))
_ADMIN = b"__admin_client"
_ACKS = (-1, 0, 1)


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append every partition's batch; answer, or say who answers later."""
    route = client.produce_route
    if route is not None and route.version == request.version:
        response = _by_route(broker, route, request)
        if response is not None:
            return [response]
    return _by_parsing(broker, client, request)


def _by_route(broker: Broker, route: ProduceRoute, request: RawRequest) -> bytes | None:
    """Take the short way; None if the request must be read in full, which nothing here prevents."""
    parts = route.split(request.data, request.position)
    if parts is None or broker.flusher.due:
        return None
    partition, index, records = parts
    if partition.config.flush_messages != NEVER or (
        request.version < 7 and len(records) > 22 and records[22] & 7 == Codec.ZSTD
    ):
        return None
    try:
        done = partition.append_produced(records, broker.host.clock.wall_ms())
    except (LogStoreError, OSError):
        return None  # nothing was appended; the long way will say what is wrong
    return route.succeeded(
        request.correlation_id,
        index,
        done.base_offset,
        done.log_append_time_ms,
        partition.start_offset,
    )


def _by_parsing(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Read the request field by field."""
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    reader.string()
    acks = reader.i16()
    reader.i32()
    by_id = version >= 13
    partitions_of = broker.by_id if by_id else broker.by_name
    topic_count = reader.count()
    pieces = [_count(topic_count, version)]
    error = 0 if acks in _ACKS else ErrorCode.INVALID_REQUIRED_ACKS
    worst = error
    appended: list[tuple[int, int]] = []
    route_end, prefix_key = 0, b""
    for _ in range(topic_count):
        key = bytes(reader.take(16)) if by_id else reader.string() or b""
        pieces.append(key if by_id else _string(key, version))
        partitions = partitions_of.get(prefix_key := key)
        topic_error = error or _topic_error(client, key, by_id, partitions is None)
        partition_count = reader.count()
        pieces.append(_count(partition_count, version))
        if topic_count == partition_count == 1:
            route_end = reader.position
        for _ in range(partition_count):
            index = reader.i32()
            size_bytes = reader.length(4)
            records = reader.take(max(size_bytes, 0))
            reader.tags()
            partition = None if partitions is None or topic_error else partitions.get(index)
            if partition is None:
                failure = topic_error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                pieces.append(_failed(version, index, failure))
                worst = worst or failure
            else:
                result, failure = _append(broker, partition, index, records, version)
                appended.append((len(pieces), index))
                pieces.append(result)
                worst = worst or failure
        reader.tags()
        if version >= 9:
            pieces.append(b"\x00")
    pieces.append(b"\x00\x00\x00\x00\x00" if version >= 9 else b"\x00\x00\x00\x00")
    if acks == 0:
        _finish_unanswered(broker, worst)
        return None
    if broker.flusher.due:
        return _after_flush(broker, request, pieces, appended)
    if route_end and not worst and appended:
        prefix = bytes(request.data[request.position : route_end])
        route_partitions = partitions_of[prefix_key]
        client.produce_route = ProduceRoute.learn(
            version, prefix, route_partitions, b"".join(pieces[:3])
        )
    return [framed(request.correlation_id, b"".join(pieces), has_tags=version >= 9)]


def _finish_unanswered(broker: Broker, worst: int) -> None:
    """End a request with acks 0: an error can only be told by hanging up."""
    for partition in broker.flusher.take_due():
        broker.flusher.flush(partition)
    if worst:
        raise MalformedRequestError(f"acks 0, and the append failed: {ErrorCode(worst).name}")


def _after_flush(
    broker: Broker, request: RawRequest, pieces: list[bytes], appended: list[tuple[int, int]]
) -> Later[list[Chunk]]:
    """Answer once the flushes that this request made due have run; with an error if one failed."""
    due = broker.flusher.take_due()
    later: Later[list[Chunk]] = Later()
    version, waiting = request.version, len(due)

    def flushed(failure: BaseException | None) -> None:
        nonlocal waiting
        waiting -= 1
        if failure is not None:
            # What was appended may not be durable: it must not count as acknowledged.
            for piece, index in appended:
                pieces[piece] = _failed(version, index, ErrorCode.KAFKA_STORAGE_ERROR, failure)
        if waiting == 0:
            body = b"".join(pieces)
            later.answer([framed(request.correlation_id, body, has_tags=version >= 9)])

    for partition in due:
        broker.flusher.flush(partition, flushed)
    return later


def _topic_error(client: Client, key: bytes, by_id: bool, is_unknown: bool) -> int:
    if is_unknown:
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if key in _INTERNAL and client.raw_client_id != _ADMIN:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return 0


def _append(
    broker: Broker, partition: KafkaPartition, index: int, records: memoryview, version: int
) -> tuple[bytes, int]:
    """Append one batch; return the encoded result and its error code."""
    try:
        if version < 7 and len(records) > 22 and records[22] & 7 == Codec.ZSTD:
            return _failed(version, index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), 76
        done = partition.append_produced(records, broker.host.clock.wall_ms())
    except (LogStoreError, OSError) as error:
        code = code_of(error)
        if code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR):
            _log.error("%s-%s: %s", partition.topic, index, error)
        return _failed(version, index, code, error), code
    if version >= 5:
        result = _RESULT.pack(
            index, 0, done.base_offset, done.log_append_time_ms, partition.start_offset
        )
        if version >= 9:
            return result + b"\x01\x00\x00", 0
        return (result + _NO_ERRORS_V8 if version == 8 else result), 0
    return _RESULT_V3.pack(index, 0, done.base_offset, done.log_append_time_ms), 0


def _failed(version: int, index: int, code: int, error: BaseException | None = None) -> bytes:
    """Return the encoded result of a refused batch, with what is known about its records."""
    if version < 5:
        return _RESULT_V3.pack(index, code, -1, -1)
    result = _RESULT.pack(index, code, -1, -1, -1)
    if version < 8:
        return result
    message = None if error is None else str(error).encode()
    bad = error.record_errors if isinstance(error, InvalidRecordError) else ()
    pieces = [result, _count(len(bad), version)]
    for record_error in bad:
        pieces += [
            I32.pack(record_error.batch_index),
            _string(record_error.message.encode(), version),
            b"\x00" if version >= 9 else b"",
        ]
    pieces += [_string(message, version), b"\x00" if version >= 9 else b""]
    return b"".join(pieces)


def _count(count: int, version: int) -> bytes:
    return uvarint(count + 1) if version >= 9 else I32.pack(count)


def _string(value: bytes | None, version: int) -> bytes:
    if version >= 9:
        return b"\x00" if value is None else uvarint(len(value) + 1) + value
    return b"\xff\xff" if value is None else I16.pack(len(value)) + value


register(0, "Produce", (3, 13), flexible_from=9, handle_raw=handle, advertised_min=0)
