"""
CreateTopics (19), versions 0 and 1.

* v1: error messages, and requests that only ask whether they would do

Asked of version 2, which has a throttle time in front of its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.emulation.translated import ask_raw
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.waiting import Later

_KEY, _SERVED = 19, 2
_MESSAGES_SINCE = 1


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Create every topic that can be created."""
    version = request.version
    body = bytes(request.data[request.position :])
    if version < _MESSAGES_SINCE:
        body += b"\x00"  # not only asked

    def rewrite(answer: memoryview) -> bytes:
        return _rewritten(answer, version)

    return ask_raw(broker, client, _KEY, _SERVED, request.correlation_id, body, rewrite)


def _rewritten(answer: memoryview, version: int) -> bytes:
    reader = Reader(answer, 0, is_flexible=False)
    writer = Writer(is_flexible=False)
    reader.i32()  # throttle time
    topic_count = reader.count()
    writer.count(topic_count)
    for _ in range(topic_count):
        writer.string(reader.string())
        writer.i16(reader.i16())
        message = reader.string()
        if version >= _MESSAGES_SINCE:
            writer.string(message)
    return writer.body()
