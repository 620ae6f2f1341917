"""
The APIs whose use is limited, as a broker has them while there are limits.

Produce counts the bytes of requests, Fetch those of answers, and topics' creation, growth and
deletion the partitions that change. Who uses too much is answered at once and told for how long to
keep still, and is not read from until then (KIP-219); a fetch gets nothing then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from logstore.compat.connection import Chunk
from logstore.compat.kafka.apis.api_01_fetch import answer
from logstore.compat.kafka.connection import Throttled
from logstore.compat.kafka.fetch.query import Query, parse
from logstore.compat.kafka.fetch.reply import Found
from logstore.compat.kafka.fetch.reply import encode as encode_found
from logstore.compat.kafka.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    ClientQuotas,
    Limit,
)
from logstore.compat.kafka.quotas.topic_changes import change_topics
from logstore.compat.kafka.registry import APIS, Api, FindApi, RawHandler, RawRequest
from logstore.compat.waiting import Later
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_PRODUCE, _FETCH = 0, 1
_TOPIC_CHANGES = (19, 20, 37)
_RESPONSE_HEADER_BYTES = 8  # with the length in front
_I32 = struct.Struct(">i")


class MeteredApis:
    """Entries of the registry, those with limits behind their meters."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        self._metered: dict[int, Api] = {}

    def finding(self, find_api: FindApi | None) -> FindApi:
        """Return who finds metered entries; `find_api` finds the bare or guarded ones."""

        def find(key: int, version: int) -> Api | None:
            metered = self._metered.get(key)
            found = APIS.get(key) if find_api is None else find_api(key, version)
            if found is None or version < APIS[key].version_min:
                return found  # versions of an emulated release
            return metered or self._meter(found)

        return find

    def _meter(self, api: Api) -> Api:
        handle: Callable[..., list[Chunk] | Later[list[Chunk]] | None]
        if api.key == _PRODUCE:
            handle = partial(_produce, self._quotas, api)
        elif api.key == _FETCH:
            handle = partial(_fetch, self._quotas)
        elif api.key in _TOPIC_CHANGES:
            handle = partial(change_topics, self._quotas, api)
        else:
            return api
        raw: RawHandler = handle
        metered = self._metered[api.key] = attrs.evolve(api, handle=None, handle_raw=raw)
        return metered


def _produce(
    quotas: ClientQuotas, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append, and count the request."""
    assert api.handle_raw is not None
    limit = quotas.limit(PRODUCER_BYTE_RATE, client)
    size_bytes = len(raw.data)
    served = api.handle_raw(broker, client, raw)
    throttle_ms = 0 if limit is None else quotas.record(PRODUCER_BYTE_RATE, limit, size_bytes)
    if throttle_ms <= 0:
        return served
    if served is None:
        return Throttled([], throttle_ms)
    told = partial(_produce_answer, throttle_ms, is_flexible=raw.is_flexible)
    return served.changed(told) if isinstance(served, Later) else told(served)


def _produce_answer(throttle_ms: int, chunks: list[Chunk], *, is_flexible: bool) -> Throttled:
    """Put the time into an answer, whose last field it is."""
    frame = bytearray(b"".join(chunk for chunk in chunks if isinstance(chunk, bytes)))
    _I32.pack_into(frame, len(frame) - (5 if is_flexible else 4), throttle_ms)
    return Throttled([bytes(frame)], throttle_ms)


def _fetch(
    quotas: ClientQuotas, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Read no more than may be sent at once, and count the answer."""
    query = parse(raw, client.listener)
    if broker.authorizer is not None:
        from logstore.compat.kafka.security.guards.fetch import readers_check

        query.may_read = readers_check(broker.authorizer, broker, client, raw, query)
    limit = quotas.limit(CONSUMER_BYTE_RATE, client)
    if limit is None:
        return answer(broker, query)
    query.bytes_max = min(query.bytes_max, quotas.bytes_max(limit))
    query.bytes_min = min(query.bytes_min, query.bytes_max)
    return answer(broker, query, partial(_encode, quotas, limit, broker, raw.is_flexible))


def _encode(
    quotas: ClientQuotas,
    limit: Limit,
    broker: Broker,
    is_flexible: bool,
    query: Query,
    found: list[Found],
) -> list[Chunk]:
    """Write what was found, unless it is too much for now."""
    chunks = encode_found(query, found)
    size_bytes = sum(
        chunk.size_bytes if isinstance(chunk, Extent) else len(chunk) for chunk in chunks
    )
    throttle_ms = quotas.record(CONSUMER_BYTE_RATE, limit, size_bytes)
    if throttle_ms <= 0:
        return chunks
    quotas.take_back(CONSUMER_BYTE_RATE, limit, size_bytes)
    for result in found:
        result.wanted.told_high_watermark = -1  # it is not told of that now
    if query.session is not None and not query.is_incremental:
        broker.fetch_sessions.close(query.session.session_id)
        query.session = None
    frame = bytearray(b"".join(c for c in encode_found(query, []) if isinstance(c, bytes)))
    _I32.pack_into(frame, _RESPONSE_HEADER_BYTES + is_flexible, throttle_ms)
    return Throttled([bytes(frame)], throttle_ms)
