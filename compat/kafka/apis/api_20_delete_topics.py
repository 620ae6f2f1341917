"""
DeleteTopics (20): versions 1-6.

* the topic is gone at once: its directories are renamed, and removed after a delay
* the groups' offsets for it go too
* ``delete.topic.enable`` off: 73 for every topic (42 before v3)
* a topic that is named twice, once by name and once by id, or by both at once: 42, not deleted;
  one by both at once, or by neither, is told as often as it comes
* 3 unknown name, 100 unknown id
* no time at all: 7 for all of its topics, unless each is named wrongly
* v4: flexible; v5: error messages; v6: topics by id
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.topics.time_given import is_none_given, is_not_waited_for
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.topic import Topic

_FIRST_WITH_DISABLED = 3
_FIRST_WITH_IDS = 6
_NO_ID = uuid.UUID(int=0)
_BOTH = "You may not specify both topic name and topic id."
_NEITHER = "Neither topic name nor id were specified."


@attrs.frozen
class _Named:
    """A topic as the request names it: by name, by id, or wrongly."""

    name: str | None
    topic_id: uuid.UUID = _NO_ID


@attrs.frozen
class _Result:
    name: str | None
    topic_id: uuid.UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def handle(broker: Broker, client: Client, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete every topic that is named once and well."""
    from kafka.protocol.admin.topics import DeleteTopicsResponse

    del client
    version = request.API_VERSION
    named = _named(request)
    if broker.config.delete_topic_enable:
        is_over = is_none_given(broker, request.timeout_ms) and _names_any(named)
        results = _too_late(named) if is_over else _delete_all(broker, named)
        if is_not_waited_for(broker, request.timeout_ms):
            results = _failed(results, ErrorCode.REQUEST_TIMED_OUT)
    else:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        code = ErrorCode.INVALID_REQUEST if version < _FIRST_WITH_DISABLED else code
        message = MESSAGES[ErrorCode.TOPIC_DELETION_DISABLED]
        if code is ErrorCode.INVALID_REQUEST:
            message = "This version does not support topic deletion."
        results = [_Result(entry.name, entry.topic_id, code, message) for entry in named]
    result_class = DeleteTopicsResponse.DeletableTopicResult
    return DeleteTopicsResponse(
        version=version,
        responses=[
            result_class(
                version=version,
                name=result.name,
                topic_id=result.topic_id,
                error_code=result.error_code,
                error_message=result.error_message,
            )
            for result in results
        ],
    )


def _named(request: DeleteTopicsRequest) -> list[_Named]:
    if request.API_VERSION < _FIRST_WITH_IDS:
        return [_Named(name) for name in request.topic_names]
    # The library gives None for an id of zeros.
    return [_Named(topic.name, topic.topic_id or _NO_ID) for topic in request.topics]


def _too_late(named: list[_Named]) -> list[_Result]:
    return [_Result(one.name, one.topic_id, ErrorCode.REQUEST_TIMED_OUT) for one in named]


def _failed(results: list[_Result], code: ErrorCode, message: str | None = None) -> list[_Result]:
    """Return what is told if all that went well did not."""
    return [
        one if one.error_code else attrs.evolve(one, error_code=code, error_message=message)
        for one in results
    ]


def _delete_all(broker: Broker, named: list[_Named]) -> list[_Result]:
    counts = Counter(named)
    results: list[_Result] = []
    found: dict[bytes, Topic] = {}
    # Ids come first, so that of one that comes by its name as well it is the name that is refused.
    for entry in _each_once(named):
        try:
            topic = _find(broker, entry, counts[entry])
        except RefusedRequestError as refusal:
            results.append(_Result(entry.name, entry.topic_id, refusal.code, refusal.message))
            continue
        if found.pop(topic.topic_id, None) is None:
            found[topic.topic_id] = topic
            continue
        topic_id = uuid.UUID(bytes=topic.topic_id)
        message = "The provided topic name maps to an ID that was already supplied."
        results.append(_Result(entry.name, topic_id, ErrorCode.INVALID_REQUEST, message))
    return _delete_found(broker, list(found.values())) + results


def _each_once(named: list[_Named]) -> list[_Named]:
    """Return what is named with ids in front; what is named by both or by neither stays there."""
    wrong = [entry for entry in named if _is_by_id(entry) == _is_by_name(entry)]
    return wrong + sorted(dict.fromkeys(one for one in named if one not in wrong), key=_is_by_name)


def _names_any(named: list[_Named]) -> bool:
    """Tell whether there is a topic to look for."""
    counts = Counter(named)
    return any(counts[one] == 1 and _is_by_id(one) != _is_by_name(one) for one in named)


def _is_by_name(entry: _Named) -> bool:
    return entry.name is not None


def _is_by_id(entry: _Named) -> bool:
    return entry.topic_id != _NO_ID


def _find(broker: Broker, entry: _Named, count: int) -> Topic:
    """Return the topic that is meant; raises RefusedRequestError."""
    by_id = _is_by_id(entry)
    if by_id == _is_by_name(entry):
        message = _BOTH if by_id else _NEITHER
        raise RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
    if count > 1:
        raise RefusedRequestError(
            ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if by_id else 'name'}."
        )
    if by_id:
        topic = broker.topic_by_id(entry.topic_id)
        if topic is None:
            raise _unknown(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic
    topic = broker.topics.get(entry.name or "")
    if topic is None:
        raise _unknown(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _unknown(code: ErrorCode) -> RefusedRequestError:
    return RefusedRequestError(code, MESSAGES[code])


def _delete_found(broker: Broker, topics: list[Topic]) -> list[_Result]:
    results: list[_Result] = []
    try:
        with broker.store.together():
            results.extend(_delete(broker, topic) for topic in topics)
    except (LogStoreError, OSError) as error:
        refusal = refusal_of(error, "making it durable that topics are deleted")
        results = _failed(results, refusal.code, refusal.message)
    return results


def _delete(broker: Broker, topic: Topic) -> _Result:
    topic_id = uuid.UUID(bytes=topic.topic_id)
    try:
        broker.delete_topic(topic)
    except (LogStoreError, OSError) as error:
        refusal = refusal_of(error, f"deleting topic {topic.name}")
        return _Result(topic.name, topic_id, refusal.code, refusal.message)
    return _Result(topic.name, topic_id)
