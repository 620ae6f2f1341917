"""
QUERY_CONSUMER_OFFSET: where a group goes on in a queue.

A group that never committed starts at 0 if all that was ever stored is there and recent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    group, topic = read_text(fields, "consumerGroup"), read_text(fields, "topic")
    queue_id = read_int(fields, "queueId")
    store = broker.store
    queue_offset = store.consumer_offsets.query(group, topic, queue_id)
    if queue_offset >= 0:
        return Response(ResponseCode.SUCCESS, None, {"offset": str(queue_offset)})
    if not read_flag(fields, "setZeroIfNotFound", default=True):
        remark = "Not found, do not set to zero, maybe this group boot first"
        return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})
    if store.min_queue_offset(topic, queue_id) <= 0 and store.is_first_recent(topic, queue_id):
        return Response(ResponseCode.SUCCESS, None, {"offset": "0"})
    remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
    return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})
