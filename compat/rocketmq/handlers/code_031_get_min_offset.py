"""GET_MIN_OFFSET: the first queue offset of a queue whose message is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.queue_starts import start_of_queue
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
    queue_offset = start_of_queue(broker.store, topic, queue_id)
    return Response(ResponseCode.SUCCESS, "", {"offset": str(queue_offset)})
