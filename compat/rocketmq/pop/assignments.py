"""Which queues a client consumes from, and how, as brokers see it (QueryAssignmentProcessor)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.clients.heartbeat import BROADCASTING
from logstore.compat.rocketmq.pop.allocation import AllocationError, allocate, allocate_for_pop
from logstore.compat.rocketmq.topics.names import RETRY_PREFIX
from logstore.compat.rocketmq.wire.bodies import object_body, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.queues.queue_offsets import is_lmq
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_int32, as_text
from logstore.segments.rocketmq.tables.message_request_modes import (
    POP,
    PULL,
    MessageRequestMode,
)
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.wire.remoting import Command

_log = logging.getLogger(__name__)


class _Query:
    """What a client asks (QueryAssignmentRequestBody)."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.topic = _text(content, "topic")
        self.group = _text(content, "consumerGroup")
        self.client_id = _text(content, "clientId")
        self.strategy = _text(content, "strategyName")
        self.is_broadcast = _text(content, "messageModel") == BROADCASTING


def query_assignment(broker: Broker, request: Command) -> Response | Later[Response]:
    """
    Tell a client which queues of a topic it is to consume from.

    Raises:
        RefusedError: the body cannot be understood.

    """
    query = _Query(read_object(request.body))
    mode = broker.popping.request_modes.get(query.topic, query.group) or _usual_mode(broker, query)
    if is_lmq(query.topic) and not query.is_broadcast:  # which no name server knows
        light = MessageQueue(query.topic, broker.settings.broker_name, 0)
        return _answer(broker, query, mode, [light])
    if broker.topics.find_queues is None:
        return _answer_alone(broker, query, mode)
    later: Later[Response] = Later()
    broker.topics.find_queues(query.topic).then(
        lambda queues: later.answer(_answer(broker, query, mode, queues)),
        lambda error: later.answer(_unknown(query, error)),
    )
    return later


def set_request_mode(broker: Broker, request: Command) -> Response:
    """
    Say how a group gets the messages of a topic from now on.

    Raises:
        RefusedError: topic or group are missing, or messages come back there.

    """
    content = read_object(request.body)
    topic, group = _text(content, "topic"), _text(content, "consumerGroup")
    if topic.startswith(RETRY_PREFIX):
        raise RefusedError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if broker.topics.get(topic) is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    if broker.groups.find(group) is None:
        remark = "subscription group does not exist"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    mode = content.get("mode") or PULL
    if mode not in (PULL, POP):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"there is no mode {mode!r}")
    try:
        share_count = as_int32(content.get("popShareQueueNum") or 0)
    except JsonTypeError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"popShareQueueNum: {error}") from error
    table = broker.popping.request_modes
    table.put(MessageRequestMode(topic, group, mode, share_count))
    table.persist()
    return Response(ResponseCode.SUCCESS)


def _usual_mode(broker: Broker, query: _Query) -> MessageRequestMode:
    settings = broker.settings
    mode = PULL if query.topic.startswith(RETRY_PREFIX) else settings.default_request_mode
    share_count = settings.default_pop_share_count if mode == POP else 0
    return MessageRequestMode(query.topic, query.group, mode, share_count)


def _answer_alone(broker: Broker, query: _Query, mode: MessageRequestMode) -> Response:
    """Answer for a broker that no name server knows: its own queues are all."""
    config, name = broker.topics.get(query.topic), broker.settings.broker_name
    if config is None:
        return _unknown(query, AllocationError("the topic does not exist"))
    count = config.read_queue_count if config.perm & PERM_READ else 0
    queues = [MessageQueue(query.topic, name, queue_id) for queue_id in range(count)]
    return _answer(broker, query, mode, queues)


def _answer(
    broker: Broker, query: _Query, mode: MessageRequestMode, queues: list[MessageQueue]
) -> Response:
    try:
        assigned = _assigned(broker, query, mode, queues)
    except AllocationError as error:
        return _unknown(query, error)
    listed = [
        {"messageQueue": queue.to_json(), "mode": mode.mode} for queue in dict.fromkeys(assigned)
    ]
    return Response(ResponseCode.SUCCESS, body=object_body(messageQueueAssignments=listed))


def _unknown(query: _Query, error: Exception) -> Response:
    """Tell a client nothing: it goes on with what it has."""
    _log.info("%s of %s: no assignment in %s: %s", *_who(query), query.topic, error)
    return Response(ResponseCode.SUCCESS, body=b"{}")


def _who(query: _Query) -> tuple[str, str]:
    return query.client_id, query.group


def _assigned(
    broker: Broker, query: _Query, mode: MessageRequestMode, queues: list[MessageQueue]
) -> list[MessageQueue]:
    queues.sort()
    if query.is_broadcast or not broker.settings.balances_on_server:
        return queues
    if not queues:
        raise AllocationError("the topic has no queues to read from")
    group = broker.consumers.group(query.group)
    if group is None:
        raise AllocationError("nobody of the group is known")
    members = sorted(set(group.client_ids()))
    if mode.mode == POP:
        return allocate_for_pop(
            query.strategy, query.client_id, queues, members, mode.pop_share_queue_count
        )
    return allocate(query.strategy, query.client_id, queues, members)


def _text(content: Mapping[str, Any], name: str) -> str:
    try:
        return as_text(content.get(name))
    except JsonTypeError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{name}: {error}") from error
