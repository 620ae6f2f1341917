"""GET_LITE_TOPIC_INFO: how far a lite topic goes, and who reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.told import topic_info

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(broker: Broker, channel: Channel, request: Command) -> Later[Response]:
    """Serve one request."""
    del channel
    return topic_info(broker, request.ext_fields)
