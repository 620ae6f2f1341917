"""GET_CONSUMER_CONNECTION_LIST: who consumes in a group, and what they subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.clients import connection_fields
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    name = read_text(request.ext_fields, "consumerGroup")
    group = broker.consumers.group(name)
    if group is None:
        raise RefusedError(
            ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online"
        )
    body = object_body(
        connectionSet=[connection_fields(client) for client in group.members.values()],
        consumeFromWhere=group.consume_from_where,
        consumeType=group.consume_type,
        messageModel=group.message_model,
        subscriptionTable={
            topic: subscription.to_json() for topic, subscription in group.subscriptions.items()
        },
    )
    return Response(ResponseCode.SUCCESS, body=body)
