"""
ShareFetch within limits of bytes and time.

Who has to keep still hears what became of records, and gets none. Those that were acquired for him
come to somebody when their time is over, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.framing import RESPONSE_PREFIX, framed
from logstore.compat.kafka.quotas.client_quotas import CONSUMER_BYTE_RATE, ClientQuotas
from logstore.compat.kafka.quotas.fetched_bytes import throttle_of_answer
from logstore.compat.kafka.quotas.throttle_times import with_throttle
from logstore.compat.kafka.share_reads.messages import (
    FetchedShareTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from logstore.compat.waiting import Later
from logstore.segment import Extent
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message

if TYPE_CHECKING:
    import uuid

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest

#: topic id and partition of what a request acknowledges records of
_Acknowledged = frozenset[tuple["uuid.UUID", int]]


def fetch_shared(
    quotas: ClientQuotas, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Acquire no more than may be sent at once, and count the answer and its time."""
    assert api.handle_raw is not None
    stopwatch = quotas.stopwatch(client)
    limit = quotas.limit(CONSUMER_BYTE_RATE, client)
    if limit is None and stopwatch is None:
        return api.handle_raw(broker, client, raw)
    asked = read_request(ShareFetchRequest, raw)
    if limit is not None:
        bytes_max = min(asked.max_bytes, quotas.bytes_max(limit))
        asked = attrs.evolve(asked, max_bytes=bytes_max, min_bytes=min(asked.min_bytes, bytes_max))
        data = memoryview(bytearray(encode_message(asked, raw.version)))
        raw = raw._replace(data=data, position=0)
    acknowledged = _acknowledged(asked)
    served = api.handle_raw(broker, client, raw)
    if stopwatch is not None:
        stopwatch.stop()
    version, correlation_id = raw.version, raw.correlation_id

    def told(chunks: list[Chunk]) -> list[Chunk]:
        throttle_ms = throttle_of_answer(quotas, limit, stopwatch, chunks)
        if throttle_ms <= 0:
            return chunks
        body = encode_message(_without_records(chunks, version, acknowledged), version)
        frames: list[Chunk] = [framed(correlation_id, body, has_tags=True)]
        return with_throttle(api.key, version, frames, throttle_ms, is_flexible=True)

    return served.changed(told) if isinstance(served, Later) else told(served or [])


def _acknowledged(asked: ShareFetchRequest) -> _Acknowledged:
    return frozenset(
        (topic.topic_id, partition.partition_index)
        for topic in asked.topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    )


def _without_records(
    chunks: list[Chunk], version: int, acknowledged: _Acknowledged
) -> ShareFetchResponse:
    """Return an answer with nothing in it but what became of acknowledgements."""
    frame = b"".join(
        bytes(chunk.size_bytes) if isinstance(chunk, Extent) else chunk for chunk in chunks
    )
    answer = decode_message(ShareFetchResponse, frame, version, RESPONSE_PREFIX.size + 1)
    return attrs.evolve(answer, responses=tuple(_kept(answer, acknowledged)), node_endpoints=())


def _kept(answer: ShareFetchResponse, acknowledged: _Acknowledged) -> Iterator[FetchedShareTopic]:
    for topic in answer.responses:
        partitions = tuple(
            attrs.evolve(one, error_code=0, records=b"", acquired_records=())
            for one in topic.partitions
            if (topic.topic_id, one.partition_index) in acknowledged
        )
        if partitions:
            yield attrs.evolve(topic, partitions=partitions)
