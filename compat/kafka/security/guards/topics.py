"""Guards of what is about topics themselves: creating, deleting and paging through them."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from logstore.compat.kafka.authorized_operations import TOPIC_OPERATIONS, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, GuardedRequest
from logstore.compat.kafka.topics.names import METADATA_TOPIC
from logstore.compat.kafka.topics.time_given import is_none_given

_TOPIC = ResourceType.TOPIC
_REFUSED, _REFUSED_MESSAGE = REFUSALS[_TOPIC]
_NO_ID = UUID(int=0)
_SHAPE_SINCE = 5
_IDS_SINCE = 6


def create_topics(request: GuardedRequest) -> Any:
    """To create all topics, or each; settings are shown to whoever may describe them."""
    message = request.message
    counts = Counter(topic.name for topic in message.topics)
    may_all = request.authorizer.allows_cluster(request.client, Operation.CREATE)
    refused = {
        name
        for name, count in counts.items()
        if count == 1 and not may_all and not request.may(Operation.CREATE, _TOPIC, name)
    }
    news = {name for name, count in counts.items() if count == 1} - refused - {METADATA_TOPIC}
    if news and is_none_given(request.broker, message.timeout_ms):
        return PASS  # the handler's to refuse, and all of it
    hidden = {
        name
        for name in counts
        if not request.operations([Operation.DESCRIBE_CONFIGS], _TOPIC, name)
    }
    if request.version < _SHAPE_SINCE:
        hidden.clear()
    if not refused and not hidden:
        return PASS
    topics = message.topics
    message.topics = [topic for topic in topics if topic.name in refused]
    answer = request.failed(_REFUSED, "Authorization failed.")
    for topic in answer.topics:
        topic.num_partitions = topic.replication_factor = -1
    message.topics = [topic for topic in topics if topic.name not in refused]
    if not message.topics:
        return answer

    def changed(served: Any) -> Any:
        for topic in served.topics:
            if topic.name in hidden and not topic.error_code:
                topic.topic_config_error_code = _REFUSED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        served.topics = [*served.topics, *answer.topics]
        return served

    return request.served(changed)


def delete_topics(request: GuardedRequest) -> Any:
    """To delete all topics, or each; of one by id its name is told only to who may describe it."""
    message = request.message
    # In no time topics are not even looked up, which would come before.
    if request.may_cluster(Operation.DELETE) or is_none_given(request.broker, message.timeout_ms):
        return PASS
    field = "topics" if request.version >= _IDS_SINCE else "topic_names"
    named: list[tuple[str | None, UUID]] = [
        (one, _NO_ID) if isinstance(one, str) else (one.name, one.topic_id or _NO_ID)
        for one in getattr(message, field)
    ]
    counts = Counter(named)
    kind = library_class(request.api, "Response").DeletableTopicResult
    refused: dict[tuple[str | None, UUID], Any] = {}
    for name, topic_id in named:
        fields = None if counts[name, topic_id] > 1 else _refused_deletion(request, name, topic_id)
        if fields is not None:
            refused[name, topic_id] = kind(version=request.version, error_code=_REFUSED,
                                           error_message=_REFUSED_MESSAGE, **fields)  # fmt: skip
    if not refused:
        return PASS
    elements = zip(getattr(message, field), named, strict=True)
    setattr(message, field, [element for element, one in elements if one not in refused])

    def changed(served: Any) -> Any:
        served.responses = [*served.responses, *refused.values()]
        return served

    return request.served(changed)


def _refused_deletion(
    request: GuardedRequest, name: str | None, topic_id: UUID
) -> dict[str, Any] | None:
    """Return how a topic is named in a refusal; None if it may go, or the handler will refuse."""
    if (name is None) == (topic_id == _NO_ID):
        return None
    if name is not None:
        is_described = request.may(Operation.DESCRIBE, _TOPIC, name)
        if is_described and name not in request.broker.topics:
            return None
        is_free = is_described and request.may(Operation.DELETE, _TOPIC, name)
        return None if is_free else {"name": name}
    topic = request.broker.topic_by_id(topic_id)
    if topic is None or request.may(Operation.DELETE, _TOPIC, topic.name):
        return None
    is_described = request.may(Operation.DESCRIBE, _TOPIC, topic.name)
    return {"name": topic.name if is_described else None, "topic_id": topic_id}


def create_partitions(request: GuardedRequest) -> Any:
    """To alter each topic; one that comes twice is the handler's to refuse, before the others."""
    message = request.message
    counts = Counter(topic.name for topic in message.topics)
    single = [name for name in members_in_order(counts) if counts[name] == 1]
    refused = [name for name in single if not request.may(Operation.ALTER, _TOPIC, name)]
    if not refused or (
        is_none_given(request.broker, message.timeout_ms) and len(refused) < len(single)
    ):
        return PASS
    by_name = {topic.name: topic for topic in message.topics}
    rest = [topic for topic in message.topics if topic.name not in refused]
    message.topics = [by_name[name] for name in refused]
    answer = request.failed_each(_REFUSED)
    if not rest:
        return answer
    message.topics = rest

    def changed(served: Any) -> Any:
        twice = [result for result in served.results if counts[result.name] > 1]
        others = [result for result in served.results if counts[result.name] == 1]
        served.results = [*twice, *answer.results, *others]
        return served

    return request.served(changed)


def describe_topic_partitions(request: GuardedRequest) -> Any:
    """To describe each topic; of all topics only those are told that may be."""
    message = request.message
    is_all = not message.topics
    names = set(request.broker.topics) if is_all else {topic.name for topic in message.topics}
    cursor = message.cursor
    start = "" if cursor is None else cursor.topic_name
    is_sound = cursor is None or (cursor.partition_index >= 0 and (is_all or start in names))
    if not is_sound or (cursor is None and "" in names):
        return PASS  # the handler's to refuse
    shown = {name for name in names if name >= start}
    refused = sorted(name for name in shown if not request.sees(_TOPIC, name))
    shown.difference_update(refused)
    if start not in shown:
        message.cursor = None  # what was asked for starts behind it
    told = [] if is_all else refused
    if not shown:
        response = library_class(request.api, "Response")
        return _with_operations(request, response(version=request.version, next_cursor=None), told)
    topic_class: Any = message.__class__.TopicRequest
    message.topics = [topic_class(version=request.version, name=name) for name in shown]
    return request.served(lambda served: _with_operations(request, served, told))


def _with_operations(request: GuardedRequest, served: Any, refused: list[str]) -> Any:
    """Say what the client may do with each topic, and of which it may not even know."""
    kind = library_class(request.api, "Response").DescribeTopicPartitionsResponseTopic
    for topic in served.topics:
        operations = request.operations(TOPIC_OPERATIONS, _TOPIC, topic.name)
        topic.topic_authorized_operations = bit_field(frozenset(operations))
    served.topics = [
        *served.topics,
        *(
            kind(version=0, name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for name in refused
        ),
    ]
    return served
