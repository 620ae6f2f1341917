"""SET_MESSAGE_REQUEST_MODE: whether a group pulls or pops the messages of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.assignments import set_request_mode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return set_request_mode(broker, request)
