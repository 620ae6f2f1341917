"""
The APIs whose use is limited, as a broker has them while there are limits.

Produce counts the bytes of requests, Fetch and ShareFetch those of answers, and topics' creation,
growth and deletion the partitions that change; all of them count the time of their handlers where
that is limited (KIP-124), but who wants no answer to a Produce. Who uses too much is answered at
once and told for how long to keep still, and is not read from until then (KIP-219); a fetch gets
nothing then.
"""

from __future__ import annotations

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
from logstore.compat.kafka.message_handlers import (
    ask_handler,
    changed,
    read_message,
    write_answer,
)
from logstore.compat.kafka.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    ClientQuotas,
    Limit,
)
from logstore.compat.kafka.quotas.fetched_bytes import throttle_of_answer
from logstore.compat.kafka.quotas.shared_fetches import fetch_shared
from logstore.compat.kafka.quotas.stopwatch import Stopwatch
from logstore.compat.kafka.quotas.throttle_times import with_throttle
from logstore.compat.kafka.quotas.topic_changes import change_topics
from logstore.compat.kafka.registry import APIS, Api, FindApi, RawHandler, RawRequest
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_PRODUCE, _FETCH, _SHARE_FETCH = 0, 1, 78
_TOPIC_CHANGES = (19, 20, 37)
#: these look at the time themselves
_THEMSELVES = (_PRODUCE, _FETCH, _SHARE_FETCH)


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
        quotas = self._quotas
        handle: Callable[..., list[Chunk] | Later[list[Chunk]] | None] | None = None
        if api.key == _PRODUCE:
            handle = partial(_produce, quotas, api)
        elif api.key == _FETCH:
            handle = partial(_fetch, quotas)
        elif api.key == _SHARE_FETCH:
            handle = partial(fetch_shared, quotas, api)
        elif api.key in _TOPIC_CHANGES:
            handle = partial(change_topics, quotas, api)
        if quotas.limits_time and api.key not in _THEMSELVES:
            handle = partial(_keep_time, quotas, api, handle or partial(_serve, api))
        if handle is None:
            return api
        raw: RawHandler = handle
        metered = self._metered[api.key] = attrs.evolve(api, handle=None, handle_raw=raw)
        return metered


def _serve(
    api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Ask a handler of either kind for frames."""
    if api.handle_raw is not None:
        return api.handle_raw(broker, client, raw)
    answer = ask_handler(api, broker, client, raw, read_message(api, raw))
    frames: list[Chunk] | Later[list[Chunk]] = changed(answer, partial(write_answer, raw))
    return frames


def _keep_time(
    quotas: ClientQuotas,
    api: Api,
    handle: RawHandler,
    broker: Broker,
    client: Client,
    raw: RawRequest,
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Serve a request, and count how long that took."""
    stopwatch = quotas.stopwatch(client)
    served = handle(broker, client, raw)
    if stopwatch is None or served is None:
        return served
    stopwatch.stop()
    key, version, is_flexible = api.key, raw.version, raw.is_flexible

    def told(chunks: list[Chunk]) -> list[Chunk]:
        throttle_ms = stopwatch.throttle_ms()
        if throttle_ms <= (chunks.throttle_ms if isinstance(chunks, Throttled) else 0):
            return chunks
        return with_throttle(key, version, chunks, throttle_ms, is_flexible=is_flexible)

    return served.changed(told) if isinstance(served, Later) else told(served)


def _produce(
    quotas: ClientQuotas, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append, and count the request and, where it is answered, its time."""
    assert api.handle_raw is not None
    stopwatch = quotas.stopwatch(client)
    limit = quotas.limit(PRODUCER_BYTE_RATE, client)
    size_bytes = len(raw.data)
    served = api.handle_raw(broker, client, raw)
    bytes_ms = 0 if limit is None else quotas.record(PRODUCER_BYTE_RATE, limit, size_bytes)
    if served is None:
        return Throttled([], bytes_ms) if bytes_ms > 0 else None
    if stopwatch is not None:
        stopwatch.stop()
    version, is_flexible = raw.version, raw.is_flexible

    def told(chunks: list[Chunk]) -> list[Chunk]:
        throttle_ms = max(bytes_ms, 0 if stopwatch is None else stopwatch.throttle_ms())
        if throttle_ms <= 0:
            return chunks
        return with_throttle(_PRODUCE, version, chunks, throttle_ms, is_flexible=is_flexible)

    return served.changed(told) if isinstance(served, Later) else told(served)


def _fetch(
    quotas: ClientQuotas, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Read no more than may be sent at once, and count the answer and its time."""
    stopwatch = quotas.stopwatch(client)
    query = parse(raw, client.listener)
    if broker.authorizer is not None:
        from logstore.compat.kafka.security.guards.fetch import readers_check

        query.may_read = readers_check(broker.authorizer, broker, client, raw, query)
    limit = quotas.limit(CONSUMER_BYTE_RATE, client)
    if limit is None and stopwatch is None:
        return answer(broker, query)
    if limit is not None:
        query.bytes_max = min(query.bytes_max, quotas.bytes_max(limit))
        query.bytes_min = min(query.bytes_min, query.bytes_max)
    encode = partial(_encode, quotas, limit, stopwatch, broker, raw.is_flexible)
    served = answer(broker, query, encode)
    if stopwatch is not None:
        stopwatch.stop()
    return served


def _encode(
    quotas: ClientQuotas,
    limit: Limit | None,
    stopwatch: Stopwatch | None,
    broker: Broker,
    is_flexible: bool,
    query: Query,
    found: list[Found],
) -> list[Chunk]:
    """Write what was found, unless it is too much for now."""
    chunks = encode_found(query, found)
    throttle_ms = throttle_of_answer(quotas, limit, stopwatch, chunks)
    if throttle_ms <= 0:
        return chunks
    for result in found:
        result.wanted.told_high_watermark = -1  # it is not told of that now
    if query.session is not None and not query.is_incremental:
        broker.fetch_sessions.close(query.session.session_id)
        query.session = None
    frames = encode_found(query, [])
    return with_throttle(_FETCH, query.version, frames, throttle_ms, is_flexible=is_flexible)
