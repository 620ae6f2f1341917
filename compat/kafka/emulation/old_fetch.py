"""
Fetch (1), versions 0-3: messages of magic 0, from version 2 on of magic 1.

* stored batches are converted whole; codecs stay, markers and headers are not there
* what is compressed with zstd cannot be had: 76
* v1: throttle time; v3: a limit for the whole answer
* unlike brokers of before 0.10.1, a message above the limit is sent all the same: nobody hangs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_01_fetch import answer
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.fetch.query import Query
from logstore.compat.kafka.fetch.reply import Found
from logstore.compat.kafka.fetch.sessions import FetchPartition
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.legacy.down_conversion import (
    UnsupportedDownConversionError,
    down_convert,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.waiting import Later

_SERVED = 4
_THROTTLE_SINCE = 1
_MAGIC_1_SINCE = 2
_LIMIT_SINCE = 3
_NO_LIMIT = 0x7FFF_FFFF
_NULL = -1


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Read what is there; if that is too little, wait for more."""
    version = request.version

    def encode(query: Query, found: list[Found]) -> list[Chunk]:
        return [_encoded(query, found, version)]

    query = _parsed(request)
    if broker.authorizer is not None:
        from logstore.compat.kafka.security.guards.fetch import readers_check

        query.may_read = readers_check(broker.authorizer, broker, client, request, query)
    return answer(broker, query, encode)


def _parsed(request: RawRequest) -> Query:
    reader = Reader(request.data, request.position, is_flexible=False)
    reader.i32()  # replica
    max_wait_ms, bytes_min = reader.i32(), reader.i32()
    bytes_max = reader.i32() if request.version >= _LIMIT_SINCE else _NO_LIMIT
    wanted: list[FetchPartition] = []
    for _ in range(reader.count()):
        topic = reader.text()
        for _ in range(reader.count()):
            index, offset, size_bytes_max = reader.i32(), reader.i64(), reader.i32()
            wanted.append(FetchPartition((topic, index), offset, size_bytes_max))
    return Query(
        version=_SERVED,
        correlation_id=request.correlation_id,
        max_wait_ms=max_wait_ms,
        bytes_min=bytes_min,
        bytes_max=bytes_max,
        isolation=0,
        session_id=0,
        session_epoch=-1,
        wanted=wanted,
        forgotten=[],
    )


def _encoded(query: Query, found: list[Found], version: int) -> bytes:
    writer = Writer(is_flexible=False)
    if version >= _THROTTLE_SINCE:
        writer.i32(0)
    topics: dict[bytes, list[Found]] = {}
    for result in found:
        topics.setdefault(result.wanted.key[0], []).append(result)
    writer.count(len(topics))
    for topic, results in topics.items():
        writer.string(topic)
        writer.count(len(results))
        for result in results:
            error, messages = _messages(result, 1 if version >= _MAGIC_1_SINCE else 0)
            writer.i32(result.wanted.key[1])
            writer.i16(error)
            writer.i64(-1 if error else result.high_watermark)
            writer.i32(_NULL if messages is None else len(messages))
            writer.raw(messages or b"")
    return writer.frame(query.correlation_id)


def _messages(result: Found, magic: int) -> tuple[int, bytes | None]:
    """Return an error code and the messages of one partition, null where none can be made."""
    if result.error or result.extent is None:
        return result.error, b""
    try:
        data = memoryview(result.extent.read())
        batches = iterate_entries(data, result.extent.file.path)
        return 0, down_convert(batches, magic, first_offset=result.wanted.fetch_offset)
    except UnsupportedDownConversionError:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, None
    except (LogStoreError, OSError) as failure:
        return code_of(failure), b""
