"""QUERY_ASSIGNMENT: which queues a client that does not share them out itself consumes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.assignments import query_assignment

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """Serve one request."""
    del channel
    return query_assignment(broker, request)
