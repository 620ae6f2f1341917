"""
Creating, growing and deleting topics within a limit of partitions a second.

Topics are changed one after the other, and each pays for its partitions. Since KIP-599's versions a
client in debt is refused (89) what is left of its request; before it is only told to keep still.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from logstore.compat.kafka.connection import Throttled
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import failed_answer
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.message_handlers import (
    ask_handler,
    changed,
    read_message,
    write_answer,
)
from logstore.compat.kafka.quotas.client_quotas import (
    CONTROLLER_MUTATION_RATE,
    ClientQuotas,
    Limit,
)
from logstore.compat.kafka.topics.growing_order import in_growing_order
from logstore.compat.kafka.topics.time_given import is_none_given

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.waiting import Later
    from logstore.segments.kafka.topic import Topic

_CREATE, _DELETE, _GROW = 19, 20, 37
_EXCEEDED = "The throttling quota has been exceeded."
_IDS_SINCE = 6


class _Change(NamedTuple):
    """What an API calls the results of its changes, and since when it refuses who is in debt."""

    results: str
    strict_since: int


_CHANGES = {
    _CREATE: _Change("topics", 6),
    _DELETE: _Change("responses", 5),
    _GROW: _Change("results", 3),
}


def change_topics(
    quotas: ClientQuotas, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Change what the client has tokens for."""
    message = read_message(api, raw)
    limit = quotas.limit(CONTROLLER_MUTATION_RATE, client)
    # in no time nothing is changed
    if limit is None or is_none_given(broker, message.timeout_ms):
        served = ask_handler(api, broker, client, raw, message)
        found: list[Chunk] | Later[list[Chunk]] = changed(
            served, lambda answer: write_answer(raw, answer)
        )
        return found
    results, throttle_ms = _pay(quotas, limit, api, broker, client, raw, message)
    answer = library_class(api, "Response")(
        version=raw.version, throttle_time_ms=throttle_ms, **{_CHANGES[api.key].results: results}
    )
    frames = write_answer(raw, answer)
    return Throttled(frames, throttle_ms) if throttle_ms > 0 else frames


def _pay(
    quotas: ClientQuotas,
    limit: Limit,
    api: Api,
    broker: Broker,
    client: Client,
    raw: RawRequest,
    message: Any,
) -> tuple[list[Any], int]:
    """Change one topic after the other; return the results, and how long the client must wait."""
    field = "topic_names" if api.key == _DELETE and raw.version < _IDS_SINCE else "topics"
    change, bucket = _CHANGES[api.key], quotas.bucket(limit)
    elements = list(getattr(message, field))
    if api.key == _GROW:
        walked = in_growing_order(element.name for element in elements)
        elements.sort(key=lambda element: walked.index(element.name))
    keys = [_key(broker, element) for element in elements]
    results: list[Any] = []
    throttle_ms = 0
    is_strict = raw.version >= change.strict_since
    for key, count in Counter(keys).items():
        of_key = [element for element, its in zip(elements, keys, strict=True) if its == key]
        setattr(message, field, of_key)
        cost = _cost(api.key, broker, of_key[0]) if count == 1 else None
        debt_ms = bucket.throttle_ms(limit.rate, quotas.now_ms) if cost is not None else 0
        if debt_ms > 0 and is_strict:
            throttle_ms = debt_ms
            results += _refused(api, message, raw.version)
            continue
        found = getattr(ask_handler(api, broker, client, raw, message), change.results)
        if cost is not None and not found[0].error_code:
            bucket.take(cost, limit.rate, quotas.now_ms)
        results += found
    if not is_strict:
        throttle_ms = bucket.throttle_ms(limit.rate, quotas.now_ms)
    return results, throttle_ms


def _key(broker: Broker, element: Any) -> object:
    """Return what a topic is named by; it is one topic, whether by its name or by its id."""
    topic_id = getattr(element, "topic_id", None)
    if topic_id is not None and element.name is not None:
        return element.name, topic_id  # which is refused
    topic = _topic(broker, element)
    if topic is not None:
        return topic.name
    return element if isinstance(element, str) else (element.name, topic_id)


def _cost(api_key: int, broker: Broker, element: Any) -> int | None:
    """Return how many partitions would change; None where the handler has a reason to refuse."""
    topic = _topic(broker, element)
    if api_key == _CREATE:
        if topic is not None:
            return None
        count: int = len(element.assignments) or element.num_partitions
        return broker.config.num_partitions if count < 0 else count
    if topic is None:
        return None
    if api_key == _DELETE:
        return topic.partition_count
    more: int = element.count - topic.partition_count
    return max(more, 0) or None


def _topic(broker: Broker, element: Any) -> Topic | None:
    """Return the topic that is named, by its name or its id."""
    topic_id = getattr(element, "topic_id", None)
    if isinstance(topic_id, UUID):
        return broker.topic_by_id(topic_id)
    name: str | None = element if isinstance(element, str) else element.name
    return broker.topics.get(name or "")


def _refused(api: Api, message: Any, version: int) -> list[Any]:
    """Return the results of what the client has no tokens for."""
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    answer = failed_answer(api, message, version, code, _EXCEEDED, says_at_top=False)
    results: list[Any] = getattr(answer, _CHANGES[api.key].results)
    if api.key == _CREATE:
        for result in results:
            result.num_partitions = result.replication_factor = -1
    return results
