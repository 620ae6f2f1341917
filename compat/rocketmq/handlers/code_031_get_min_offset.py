"""GET_MIN_OFFSET: the first queue offset of a queue whose message is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    topic, queue_id = read_text(fields, "topic"), read_int(fields, "queueId")
    store = broker.store
    queue_offset = store.min_queue_offset(topic, queue_id)
    if not store.max_queue_offset(topic, queue_id) and store.tables.is_batch_topic(topic):
        queue_offset = -1  # a batch queue does not know where it starts before its first batch
    return Response(ResponseCode.SUCCESS, "", {"offset": str(queue_offset)})
