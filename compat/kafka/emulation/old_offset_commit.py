"""
OffsetCommit (8), versions 0 and 1.

* v0 knew no members and no generations: such a commit is that of a simple consumer. Brokers of its
  time kept it in ZooKeeper; here it is the group's
* v1: a time for each partition, which is not looked at: offsets expire as the broker says

Asked of version 2, whose answer is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.emulation.translated import ask_raw
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_KEY, _SERVED = 8, 2
_MEMBERS_SINCE = _TIMES_SINCE = 1
_NO_GENERATION = -1
_DEFAULT_RETENTION = -1


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Keep the offsets of all partitions that exist."""
    body = _translated(request)
    return ask_raw(broker, client, _KEY, _SERVED, request.correlation_id, body, bytes)


def _translated(request: RawRequest) -> bytes:
    reader = Reader(request.data, request.position, is_flexible=False)
    writer = Writer(is_flexible=False)
    has_members = request.version >= _MEMBERS_SINCE
    writer.string(reader.string())
    writer.i32(reader.i32() if has_members else _NO_GENERATION)
    writer.string(reader.string() if has_members else b"")
    writer.i64(_DEFAULT_RETENTION)
    topic_count = reader.count()
    writer.count(topic_count)
    for _ in range(topic_count):
        writer.string(reader.string())
        partition_count = reader.count()
        writer.count(partition_count)
        for _ in range(partition_count):
            writer.i32(reader.i32())
            writer.i64(reader.i64())
            if request.version >= _TIMES_SINCE:
                reader.i64()
            writer.string(reader.string())
    return writer.body()
