"""GET_BROKER_LITE_INFO: how much of lite topics there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.told import broker_info

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel, request
    return broker_info(broker)
