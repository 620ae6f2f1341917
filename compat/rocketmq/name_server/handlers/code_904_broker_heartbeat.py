"""BROKER_HEARTBEAT: a broker of 5.x lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    server.routes.heard_of(
        read_text(request.ext_fields, "clusterName"),
        read_text(request.ext_fields, "brokerAddr"),
        server.host.clock.wall_ms(),
    )
    return Response(ResponseCode.SUCCESS)
