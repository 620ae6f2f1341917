"""GET_BROKER_CLUSTER_INFO: all brokers by name and by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.route_bodies import cluster_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    routes = server.routes
    body = cluster_body(routes.brokers, routes.clusters)
    return Response(ResponseCode.SUCCESS, body=body)
