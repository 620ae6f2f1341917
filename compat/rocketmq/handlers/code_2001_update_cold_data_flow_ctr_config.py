"""UPDATE_COLD_DATA_FLOW_CTR_CONFIG: how much cold data groups may read, lines ``group=bytes``."""

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
    broker.cold_reads.update(bytes(request.body).decode("utf-8", "replace"))
    return Response(ResponseCode.SUCCESS)
