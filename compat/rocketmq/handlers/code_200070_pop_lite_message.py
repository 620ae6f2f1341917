"""POP_LITE_MESSAGE: messages of lite topics that a client reads, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_pops import answer_lite_pop

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """Serve one request."""
    return answer_lite_pop(broker, channel, request)
