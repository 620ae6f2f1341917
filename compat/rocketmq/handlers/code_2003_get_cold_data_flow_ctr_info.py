"""GET_COLD_DATA_FLOW_CTR_INFO: how much cold data may be read, by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    return Response(ResponseCode.SUCCESS, body=broker.cold_reads.body())
