"""QUERY_TOPICS_BY_CONSUMER: the topics in which a group has committed (5.x)."""

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
    group = read_text(request.ext_fields, "group")
    body = object_body(
        brokerAddr=f"{broker.advertised_host}:{broker.advertised_port}",
        topicList=sorted(broker.store.consumer_offsets.topics_of(group)),
    )
    return Response(ResponseCode.SUCCESS, body=body)
