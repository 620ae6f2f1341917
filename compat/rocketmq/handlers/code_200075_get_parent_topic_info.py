"""GET_PARENT_TOPIC_INFO: how many lite topics a topic has, and who reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.told import parent_info

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return parent_info(broker, request.ext_fields)
