"""UPDATE_AND_GET_GROUP_FORBIDDEN: may a group read a topic? With `readable` it is settled (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    group, topic = read_text(fields, "group"), read_text(fields, "topic")
    if "readable" in fields:
        broker.groups.forbid(group, topic, is_forbidden=not read_flag(fields, "readable"))
    is_readable = not broker.groups.is_forbidden(group, topic)
    body = object_body(group=group, readable=is_readable, topic=topic)
    return Response(ResponseCode.SUCCESS, "", body=body)
