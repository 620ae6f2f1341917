"""QUERY_TOPIC_CONSUME_BY_WHO: the groups that subscribe to a topic or have committed in it."""

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
    topic = read_text(request.ext_fields, "topic")
    groups = set(broker.consumers.groups_of_topic(topic))
    groups |= broker.store.consumer_offsets.groups_of(topic)
    return Response(ResponseCode.SUCCESS, body=object_body(groupList=sorted(groups)))
