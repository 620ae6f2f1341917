"""QUERY_SUBSCRIPTION_BY_CONSUMER: what a group subscribes to in a topic (5.x)."""

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
    fields = request.ext_fields
    group, topic = read_text(fields, "group"), read_text(fields, "topic")
    subscription = broker.consumers.subscription(group, topic)
    body = object_body(
        group=group,
        subscriptionData=None if subscription is None else subscription.to_json(),
        topic=topic,
    )
    return Response(ResponseCode.SUCCESS, body=body)
