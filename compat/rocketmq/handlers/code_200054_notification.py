"""NOTIFICATION: whether there is something to pop, told when there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.notices import answer_question

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """Serve one request."""
    return answer_question(broker, channel, request)
