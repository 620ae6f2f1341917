"""POLLING_INFO: how many pops of a group wait for messages of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.notices import check_readable
from logstore.compat.rocketmq.pop.pop_requests import NO_REMARK, check_target, wanted_queue
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    topic, group = read_text(fields, "topic"), read_text(fields, "consumerGroup")
    queue_id = wanted_queue(fields)
    try:
        check_readable(broker, "peeking message")
        check_target(broker, channel, topic, group, queue_id)
    except RefusedError as refusal:
        raise RefusedError(refusal.code, refusal.remark, as_fields(pollingNum=0)) from None
    count = broker.popping.waits.count(topic, group, queue_id)
    return Response(ResponseCode.SUCCESS, NO_REMARK, as_fields(pollingNum=count))
