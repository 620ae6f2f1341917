"""TRIGGER_LITE_DISPATCH: look again for what a group may have of lite topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.told import trigger_dispatch

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return trigger_dispatch(broker, request.ext_fields)
