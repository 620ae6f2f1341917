"""SEARCH_OFFSET_BY_TIMESTAMP: the queue offset for a time of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import queue_name
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.reading.time_lookup import BoundaryType

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    topic, queue_id = read_text(fields, "topic"), read_int(fields, "queueId")
    timestamp_ms = read_long(fields, "timestamp")
    boundary = BoundaryType.named(fields.get("boundaryType"))
    if fields.get("liteTopic", "").strip():
        topic = queue_name(topic, fields["liteTopic"])
    queue_offset = broker.store.queue_offset_for_time(topic, queue_id, timestamp_ms, boundary)
    return Response(ResponseCode.SUCCESS, None, {"offset": str(queue_offset)})
