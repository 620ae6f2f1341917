"""
Which resources a remoting request asks for, and what it wants to do with each.

Requests of clients are read by hand, as their retry topics stand for groups and heart beats name
many resources; the others by the table of :mod:`~logstore.compat.rocketmq.auth.wants`. A request
without any field asks for nothing. Source: ``DefaultAuthorizationContextBuilder``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.rocketmq.auth import resources
from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.resources import CLUSTER, TOPIC, Resource, is_retry_topic
from logstore.compat.rocketmq.auth.wants import GET, PUB, SUB, UPDATE, WANTS
from logstore.compat.rocketmq.clients.heartbeat import read_heartbeat
from logstore.compat.rocketmq.clients.lock_requests import read_lock_request
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.wire.remoting import Command

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


class Asked(NamedTuple):
    """A resource, and actions of which one must be allowed."""

    resource: Resource
    actions: tuple[str, ...]


def asked_by(request: Command, cluster: str) -> list[Asked]:
    """
    Return what a request asks for; `cluster` is the broker's.

    Raises:
        AccessError: it cannot be read.

    """
    if not request.ext_fields:
        return []
    read = _READERS.get(request.code)
    try:
        return _by_table(request, cluster) if read is None else read(request)
    except (LogStoreError, ValueError, TypeError) as error:
        raise AccessError("parse authorization context error.") from error


def _by_table(request: Command, cluster: str) -> list[Asked]:
    want = WANTS.get(request.code)
    if want is None:
        return []
    fields = request.ext_fields
    if request.code == RequestCode.UPDATE_AND_CREATE_TOPIC:
        kind = fields.get("topicFilterType")
        if kind not in _FILTER_TYPES:
            raise ValueError(f"{kind} is no filter type")
    found: list[Asked] = []
    for name, kind, splitter in want.named:
        value = fields.get(name)
        if value is None:
            continue
        names = [one for one in value.split(splitter) if one] if splitter else [value]
        for one in names:
            is_retry = kind == TOPIC and is_retry_topic(one)
            resource = resources.group(one) if is_retry else Resource(kind, one)
            found.append(Asked(resource, (want.action,)))
    if not found and want.is_of_cluster:
        found.append(Asked(Resource(CLUSTER, cluster), (want.action,)))
    return found


def _of_topic(name: str | None, group_actions: tuple[str, ...], *actions: str) -> list[Asked]:
    """Return a topic with its actions; a group with its own where it is a retry topic."""
    if is_retry_topic(name):
        return [Asked(resources.group(name), group_actions)]
    return [Asked(resources.topic(name), actions)]


def _of_topic_and_group(
    name: str | None, group: str | None, actions: tuple[str, ...]
) -> list[Asked]:
    found = [] if is_retry_topic(name) else [Asked(resources.topic(name), actions)]
    return [*found, Asked(resources.group(group), actions)]


def _route(request: Command) -> list[Asked]:
    return _of_topic(request.ext_fields.get("topic"), (SUB, GET), PUB, SUB, GET)


def _send(request: Command) -> list[Asked]:
    return _of_topic(request.ext_fields.get("topic"), (SUB,), PUB)


def _send_v2(request: Command) -> list[Asked]:
    return _of_topic(request.ext_fields.get("b"), (SUB,), PUB)


def _recall(request: Command) -> list[Asked]:
    return [Asked(resources.topic(request.ext_fields.get("topic")), (PUB,))]


def _end_transaction(request: Command) -> list[Asked]:
    name = request.ext_fields.get("topic")
    return [Asked(resources.topic(name), (PUB,))] if name is not None and name.strip() else []


def _send_back(request: Command) -> list[Asked]:
    return [Asked(resources.group(request.ext_fields.get("group")), (SUB,))]


def _pull(request: Command) -> list[Asked]:
    fields = request.ext_fields
    return _of_topic_and_group(fields.get("topic"), fields.get("consumerGroup"), (SUB,))


def _query_message(request: Command) -> list[Asked]:
    return [Asked(resources.topic(request.ext_fields.get("topic")), (SUB, GET))]


def _heart_beat(request: Command) -> list[Asked]:
    found: list[Asked] = []
    for consumer in read_heartbeat(bytes(request.body)).consumers:
        found.append(Asked(resources.group(consumer.group), (SUB,)))
        found += _subscribed(one.topic for one in consumer.subscriptions)
    return found


def _lock(request: Command) -> list[Asked]:
    group, _, queues = read_lock_request(request.body, is_lock=False)
    if not group:
        raise ValueError("a group is to hold queues, and it is not said which")
    return [Asked(resources.group(group), (SUB,)), *_subscribed(one.topic for one in queues)]


def _subscribed(topics: Iterable[str]) -> list[Asked]:
    return [Asked(resources.topic(name), (SUB,)) for name in topics if not is_retry_topic(name)]


def _unregister(request: Command) -> list[Asked]:
    group = request.ext_fields.get("consumerGroup")
    return [Asked(resources.group(group), (SUB,))] if group is not None and group.strip() else []


def _consumer_list(request: Command) -> list[Asked]:
    return [Asked(resources.group(request.ext_fields.get("consumerGroup")), (SUB, GET))]


def _query_offset(request: Command) -> list[Asked]:
    fields = request.ext_fields
    return _of_topic_and_group(fields.get("topic"), fields.get("consumerGroup"), (SUB, GET))


def _update_offset(request: Command) -> list[Asked]:
    fields = request.ext_fields
    return _of_topic_and_group(fields.get("topic"), fields.get("consumerGroup"), (SUB, UPDATE))


_READERS: dict[int, Callable[[Command], list[Asked]]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _route,
    RequestCode.SEND_MESSAGE: _send,
    RequestCode.SEND_MESSAGE_V2: _send_v2,
    RequestCode.SEND_BATCH_MESSAGE: _send_v2,
    RequestCode.RECALL_MESSAGE: _recall,
    RequestCode.END_TRANSACTION: _end_transaction,
    RequestCode.CONSUMER_SEND_MSG_BACK: _send_back,
    RequestCode.PULL_MESSAGE: _pull,
    RequestCode.QUERY_MESSAGE: _query_message,
    RequestCode.HEART_BEAT: _heart_beat,
    RequestCode.UNREGISTER_CLIENT: _unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _consumer_list,
    RequestCode.QUERY_CONSUMER_OFFSET: _query_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: _update_offset,
    RequestCode.LOCK_BATCH_MQ: _lock,
    RequestCode.UNLOCK_BATCH_MQ: _lock,
}
