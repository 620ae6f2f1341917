"""GET_PRODUCER_CONNECTION_LIST: the clients of a producer group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.clients import connection_fields
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    name = read_text(request.ext_fields, "producerGroup")
    clients = broker.producers.members(name)
    if not clients:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    body = object_body(connectionSet=[connection_fields(client) for client in clients])
    return Response(ResponseCode.SUCCESS, body=body)
