"""GET_CONSUMER_LIST_BY_GROUP: the ids of a group's clients, which share its queues out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    name = read_text(request.ext_fields, "consumerGroup")
    group = broker.consumers.group(name)
    if group is None or not group.members:
        remark = f"no consumer for this group, {name}"
        return Response(ResponseCode.SYSTEM_ERROR, remark, {})
    body = object_body(consumerIdList=group.client_ids())
    return Response(ResponseCode.SUCCESS, None, {}, body)
