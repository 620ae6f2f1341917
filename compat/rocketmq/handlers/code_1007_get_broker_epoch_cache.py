"""GET_BROKER_EPOCH_CACHE: the epochs of masters, which only brokers with a controller have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    raise RefusedError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
