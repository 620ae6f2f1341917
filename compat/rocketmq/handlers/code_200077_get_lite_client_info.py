"""GET_LITE_CLIENT_INFO: which lite topics a client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.told import client_info

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return client_info(broker, request.ext_fields)
