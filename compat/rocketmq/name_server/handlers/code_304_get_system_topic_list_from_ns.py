"""GET_SYSTEM_TOPIC_LIST_FROM_NS: topics named after clusters and brokers, and one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.route_bodies import topic_list_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    routes = server.routes
    names: dict[str, None] = {}
    for cluster, broker_names in routes.clusters.items():
        names.update(dict.fromkeys((cluster, *sorted(broker_names))))
    addresses = [address for data in routes.brokers.values() for address in data.addresses.values()]
    body = topic_list_body(names, addresses[0] if addresses else None)
    return Response(ResponseCode.SUCCESS, body=body)
