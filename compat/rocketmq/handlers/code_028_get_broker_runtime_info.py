"""GET_BROKER_RUNTIME_INFO: a table of numbers about broker and store, by Java's keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.runtime_info import runtime_info
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    return Response(ResponseCode.SUCCESS, body=object_body(table=runtime_info(broker)))
