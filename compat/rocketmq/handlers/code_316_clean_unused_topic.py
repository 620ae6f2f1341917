"""CLEAN_UNUSED_TOPIC: queues of topics that are no more go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    known = broker.topics.table.topics
    kept = (names.LMQ_PREFIX, names.RETRY_PREFIX, names.DLQ_PREFIX, names.SYSTEM_PREFIX)
    unused = {
        topic
        for topic in broker.store.topics()
        if topic not in known and topic not in names.SYSTEM_TOPICS and not topic.startswith(kept)
    }
    broker.store.delete_topics(unused)
    return Response(ResponseCode.SUCCESS)
