"""LITE_SUBSCRIPTION_CTL: clients read other lite topics from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.subscribing import subscribe

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """Serve one request."""
    return subscribe(broker, channel, request)
