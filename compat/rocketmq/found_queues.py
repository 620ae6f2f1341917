"""Queues of a topic on all brokers, as name servers tell (topicRouteData2TopicSubscribeInfo)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from logstore.compat.rocketmq.found_routes import queue_data
from logstore.compat.rocketmq.name_server.routes import QueueData, RouteTable
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_fields import (
    JsonTypeError,
    as_list,
    as_object,
)
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: promises a topic's queues that can be read from; fails where the topic is nowhere
FindQueues: TypeAlias = Callable[[str], Later[list[MessageQueue]]]
_TIMEOUT_MS = 3000


def queues_in_table(routes: RouteTable, topic: str) -> Later[list[MessageQueue]]:
    """Return what a name server in this process knows."""
    later: Later[list[MessageQueue]] = Later()
    route = routes.route(topic)
    if route is None:
        later.fail(LogStoreError(f"{topic} is nowhere"))
    else:
        later.answer(_readable(topic, route.queues))
    return later


def queues_at(channel: Channel, topic: str) -> Later[list[MessageQueue]]:
    """Ask a name server elsewhere."""
    later: Later[list[MessageQueue]] = Later()

    def answered(answer: Command) -> None:
        if answer.code != ResponseCode.SUCCESS:
            later.fail(LogStoreError(f"{topic}: {answer.remark}"))
            return
        try:
            later.answer(_readable(topic, _queue_data(bytes(answer.body))))
        except (JsonError, JsonTypeError, UnicodeDecodeError) as error:
            later.fail(error)

    code = RequestCode.GET_ROUTEINFO_BY_TOPIC
    channel.ask(code, {"topic": topic}, timeout_ms=_TIMEOUT_MS).then(answered, later.fail)
    return later


def _readable(topic: str, found: list[QueueData]) -> list[MessageQueue]:
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in found
        if data.perm & PERM_READ
        for queue_id in range(data.read_queue_count)
    ]


def _queue_data(body: bytes) -> list[QueueData]:
    """Read the part of a route that matters here. Raises JsonError, JsonTypeError."""
    entries = as_list(as_object(parse_json(body.decode())).get("queueDatas"))
    return [queue_data(as_object(entry)) for entry in entries]
