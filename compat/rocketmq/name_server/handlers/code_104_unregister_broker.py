"""UNREGISTER_BROKER: a broker says goodbye."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.broker_identity import broker_identity
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker = broker_identity(request.ext_fields)
    server.routes.unregister(broker.cluster, broker.address, broker.name)
    return Response(ResponseCode.SUCCESS)
