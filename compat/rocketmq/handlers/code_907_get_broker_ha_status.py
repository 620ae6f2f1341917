"""GET_BROKER_HA_STATUS: who follows this broker and how far each is, or whom it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.codes import ResponseCode
from logstore.compat.rocketmq.remoting import Response
from logstore.compat.rocketmq.replication.ha_status import ha_status

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    return Response(ResponseCode.SUCCESS, body=ha_status(broker))
