"""Routes of topics on all brokers, as name servers tell them (TopicRouteData)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from logstore.compat.rocketmq.name_server.routes import MASTER_ID, QueueData, RouteTable
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_fields import (
    JsonTypeError,
    as_int32,
    as_list,
    as_object,
    as_text,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.registrar import Reach
    from logstore.compat.rocketmq.wire.remoting import Command

_TIMEOUT_MS = 3000


@attrs.frozen
class FoundRoute:
    """Where a topic is: its queues by broker name, and the brokers' addresses by name and id."""

    queues: tuple[QueueData, ...] = ()
    addresses: Mapping[str, Mapping[int, str]] = attrs.field(factory=dict[str, Mapping[int, str]])

    def masters(self) -> dict[str, str]:
        """Return the addresses of the masters by broker name."""
        return {
            name: known[MASTER_ID] for name, known in self.addresses.items() if MASTER_ID in known
        }


#: promises a topic's route; one without queues where the topic is nowhere
FindRoute: TypeAlias = Callable[[str], Later[FoundRoute]]


@attrs.frozen
class Cluster:
    """How the brokers around one are found, and reached."""

    find_route: FindRoute
    reach: Reach


def route_in_table(routes: RouteTable, topic: str) -> Later[FoundRoute]:
    """Return what a name server in this process knows."""
    later: Later[FoundRoute] = Later()
    route = routes.route(topic)
    if route is None:
        later.answer(FoundRoute())
    else:
        addresses = {broker.broker_name: dict(broker.addresses) for broker in route.brokers}
        later.answer(FoundRoute(tuple(route.queues), addresses))
    return later


def route_at(channel: Channel, topic: str) -> Later[FoundRoute]:
    """Ask a name server elsewhere."""
    code = RequestCode.GET_ROUTEINFO_BY_TOPIC
    return channel.ask(code, {"topic": topic}, timeout_ms=_TIMEOUT_MS).changed(_route_of)


def _route_of(answer: Command) -> FoundRoute:
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return FoundRoute()
    if answer.code != ResponseCode.SUCCESS:
        raise LogStoreError(answer.remark or f"the name server answers {answer.code}")
    try:
        content = as_object(parse_json(bytes(answer.body).decode()))
        queues = tuple(queue_data(as_object(entry)) for entry in as_list(content["queueDatas"]))
        addresses: dict[str, Mapping[int, str]] = {}
        for entry in as_list(content["brokerDatas"]):
            fields = as_object(entry)
            known = as_object(fields.get("brokerAddrs"))
            by_id = {int(number): as_text(address) for number, address in known.items()}
            addresses[as_text(fields.get("brokerName"))] = by_id
    except (JsonError, JsonTypeError, KeyError, ValueError) as error:
        raise LogStoreError(f"what the name server answers cannot be read: {error}") from error
    return FoundRoute(queues, addresses)


def queue_data(fields: Mapping[Any, Any]) -> QueueData:
    """Read what a route tells of one broker's queues. Raises JsonTypeError."""
    return QueueData(
        as_text(fields.get("brokerName")),
        as_int32(fields.get("readQueueNums")),
        as_int32(fields.get("writeQueueNums")),
        as_int32(fields.get("perm")),
        as_int32(fields.get("topicSysFlag", 0)),
    )
