"""
Produce (0), versions 0-2: message sets of magic 0 and 1.

* what is sent becomes one record batch a partition, as brokers from 0.11 to 3.9 stored it
* a message that is cut short ends the set; where none is whole nothing is written, and that is fine
* v1: throttle time; v2: the time that the broker gave, if the topic says that it does

Asked of version 3, which differs in the transactional id in front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.emulation.translated import ask_raw
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError
from logstore.segments.kafka.legacy.message import MAGIC_POSITION
from logstore.segments.kafka.legacy.up_conversion import up_convert_produced
from logstore.segments.kafka.record_batch import MAGIC, batch_size_bytes

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.waiting import Later

_KEY, _SERVED = 0, 3
_THROTTLE_SINCE, _TIME_SINCE = 1, 2
#: what the served version would say otherwise: why messages could not be converted, or 0 where
#: there are none; by topic and partition
_Refusals = dict[tuple[bytes | None, int], int]


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append what the message sets hold."""
    refusals: _Refusals = {}
    body = _translated(request, refusals)
    version = request.version

    def rewrite(answer: memoryview) -> bytes:
        return _rewritten(answer, version, refusals)

    return ask_raw(broker, client, _KEY, _SERVED, request.correlation_id, body, rewrite)


def _translated(request: RawRequest, refusals: _Refusals) -> bytes:
    reader = Reader(request.data, request.position, is_flexible=False)
    writer = Writer(is_flexible=False)
    writer.string(None)
    acks = reader.i16()
    writer.i16(acks)
    writer.i32(reader.i32())  # timeout
    topic_count = reader.count()
    writer.count(topic_count)
    for _ in range(topic_count):
        topic = reader.string()
        writer.string(topic)
        batches: list[tuple[int, bytes | bytearray]] = []
        for _ in range(reader.count()):
            index, records = reader.batch()
            batch: bytes | bytearray = b""
            try:
                if _has_whole_message(records):
                    batch = _converted(records)
                elif acks == 0:
                    # Nobody is told that it is fine, and what is served now would hang up.
                    continue
                else:
                    refusals[topic, index] = ErrorCode.NONE
            except LogStoreError as error:
                refusals[topic, index] = code_of(error)
            batches.append((index, batch))
        _put_batches(writer, batches)
    return writer.body()


def _put_batches(writer: Writer, batches: list[tuple[int, bytes | bytearray]]) -> None:
    writer.count(len(batches))
    for index, batch in batches:
        writer.i32(index)
        writer.i32(len(batch))
        writer.raw(bytes(batch))


def _has_whole_message(records: memoryview) -> bool:
    return len(records) > MAGIC_POSITION and batch_size_bytes(records) <= len(records)


def _converted(records: memoryview) -> bytes | bytearray:
    if len(records) > MAGIC_POSITION and records[MAGIC_POSITION] >= MAGIC:
        return bytes(records)  # some clients do; the leader looks at it
    return up_convert_produced(records)


def _rewritten(answer: memoryview, version: int, refusals: _Refusals) -> bytes:
    reader = Reader(answer, 0, is_flexible=False)
    writer = Writer(is_flexible=False)
    topic_count = reader.count()
    writer.count(topic_count)
    for _ in range(topic_count):
        topic = reader.string()
        writer.string(topic)
        partition_count = reader.count()
        writer.count(partition_count)
        for _ in range(partition_count):
            index, error = reader.i32(), reader.i16()
            writer.i32(index)
            writer.i16(refusals.get((topic, index), error))
            writer.i64(reader.i64())
            time_ms = reader.i64()
            if version >= _TIME_SINCE:
                writer.i64(time_ms)
    if version >= _THROTTLE_SINCE:
        writer.i32(reader.i32())
    return writer.body()
