"""GET_ALL_PRODUCER_INFO: all producer groups and their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    wall_ms, now_ms = broker.host.clock.wall_ms(), int(broker.host.clock.monotonic_ms())
    data = {
        group: [
            {
                "clientId": client.client_id,
                "language": client.language,
                "lastUpdateTimestamp": wall_ms - (now_ms - client.last_seen_ms),
                "remoteIP": f"/{client.channel.address}",
                "version": client.version,
            }
            for client in clients
        ]
        for group, clients in broker.producers.groups()
    }
    return Response(ResponseCode.SUCCESS, body=object_body(data=data))
