"""Guard of Metadata: who may not describe a topic does not learn whether there is one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from logstore.compat.kafka.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, GuardedRequest

_TOPIC = ResourceType.TOPIC
_REFUSED = REFUSALS[_TOPIC][0]
_NO_ID = UUID(int=0)
#: no topic by itself is refused so
_OF_THE_WHOLE = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST)
_IDS_SINCE = 12
_CREATES_SINCE = 4
_OPERATIONS_SINCE = 8
_CLUSTER_OPERATIONS_UNTIL = 10


def metadata(request: GuardedRequest) -> Any:
    """To describe each topic, and to create those that a question would bring into being."""
    message, version = request.message, request.version
    is_all = message.topics is None or (version == 0 and not message.topics)
    asks_operations = version >= _OPERATIONS_SINCE and (
        message.include_topic_authorized_operations
        or (version <= _CLUSTER_OPERATIONS_UNTIL and message.include_cluster_authorized_operations)
    )
    refused = [] if is_all else _refuse(request)
    if not (is_all or refused or asks_operations):
        return PASS

    def changed(served: Any) -> Any:
        if is_all:
            served.topics = [one for one in served.topics if request.sees(_TOPIC, one.name)]
        if asks_operations:
            _tell_operations(request, served)
        served.topics = [*served.topics, *refused]
        return served

    return request.served(changed)


def _refuse(request: GuardedRequest) -> list[Any]:
    """Take out of the question what the client may not ask; return what is answered to that."""
    message = request.message
    uses_ids = request.version >= _IDS_SINCE and any(
        (one.topic_id or _NO_ID) != _NO_ID for one in message.topics
    )
    kind = library_class(request.api, "Response").MetadataResponseTopic
    allowed: list[Any] = []
    refused: dict[object, Any] = {}
    for wanted in message.topics:
        if uses_ids:
            topic = request.broker.topic_by_id(wanted.topic_id or _NO_ID)
            name = None if topic is None else topic.name
            fields: dict[str, Any] = {"name": None, "topic_id": wanted.topic_id}
        else:
            name = wanted.name
            fields = {"name": name}
        if name is None or _may(request, name):
            allowed.append(wanted)
        else:
            refused[name] = kind(version=request.version, error_code=_REFUSED, **fields)
    message.topics = allowed
    return list(refused.values())


def _may(request: GuardedRequest, name: str) -> bool:
    """Tell whether the client may ask for a topic, which may come into being by that."""
    if not request.may(Operation.DESCRIBE, _TOPIC, name):
        return False
    broker = request.broker
    may_create = request.version < _CREATES_SINCE or request.message.allow_auto_topic_creation
    if name in broker.topics or not (may_create and broker.config.auto_create_topics_enable):
        return True
    return request.authorizer.allows_cluster(request.client, Operation.CREATE) or request.may(
        Operation.CREATE, _TOPIC, name
    )


def _tell_operations(request: GuardedRequest, served: Any) -> None:
    """Say what the client may do, where it asks; a request refused as a whole asks nothing."""
    if any(topic.error_code in _OF_THE_WHOLE for topic in served.topics):
        return
    if request.message.include_topic_authorized_operations:
        for topic in served.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                topic.authorized_operations = None
                continue
            operations = request.operations(TOPIC_OPERATIONS, _TOPIC, topic.name or "")
            topic.authorized_operations = operations
    is_of_cluster = request.version <= _CLUSTER_OPERATIONS_UNTIL
    if is_of_cluster and request.message.include_cluster_authorized_operations:
        served.authorized_operations = cluster_operations(request)


def cluster_operations(request: GuardedRequest) -> set[int]:
    """Return what the client may do with the cluster: nothing, unless it may describe it."""
    if not request.may_cluster(Operation.DESCRIBE):
        return set()
    return request.operations(CLUSTER_OPERATIONS, ResourceType.CLUSTER, CLUSTER_NAME)


def describe_log_dirs(request: GuardedRequest) -> Any:
    """To describe the cluster; where an answer has no place for a code it is empty."""
    if request.may_cluster(Operation.DESCRIBE):
        return PASS
    answer = request.refused(ResourceType.CLUSTER)
    answer.results = []
    return answer


def describe_cluster(request: GuardedRequest) -> Any:
    """Everybody may ask for the brokers; what one may do is worked out for who asks."""
    if not request.message.include_cluster_authorized_operations:
        return PASS

    def changed(served: Any) -> Any:
        if not served.error_code:
            served.authorized_operations = cluster_operations(request)
        return served

    return request.served(changed)
