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
    queue_offset = broker.store.min_queue_offset(
        read_text(fields, "topic"), read_int(fields, "queueId")
    )
    return Response(ResponseCode.SUCCESS, "", {"offset": str(queue_offset)})
